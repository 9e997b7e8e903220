import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLogger } from "@skerry/base";
import { expect, test } from "vitest";
import { ownerIdOf } from "./owner-id.ts";

const logger = createLogger({ name: "test", level: "error" });

test("an api process keeps its id, which differs between data folders and ports", () => {
  const dirs = ["a", "b"].map((name) => mkdtempSync(join(tmpdir(), `skerry-${name}-`)));
  const nameOf = (dir = "", port = 1) => ownerIdOf({ dataDir: dir, port, logger });
  const first = nameOf(dirs[0]);
  expect(nameOf(dirs[0])).toBe(first);
  expect(new Set([first, nameOf(dirs[1]), nameOf(dirs[0], 2)]).size).toBe(3);
  writeFileSync(join(dirs[0] ?? "", "api-id"), "");
  const second = nameOf(dirs[0]);
  expect(second).not.toBe(first);
  expect(nameOf(dirs[0])).toBe(second);
  for (const dir of dirs) rmSync(dir, { recursive: true });
});

test("without a writable data folder, each start has a new id", () => {
  const nameOf = () => ownerIdOf({ dataDir: "/proc/nowhere", port: 1, logger });
  expect(nameOf()).not.toBe(nameOf());
});
