import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { spawnCommand } from "@skerry/base";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openStore } from "../src/index.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "skerry-durable-"));
});
afterAll(async () => await rm(folder, { recursive: true, force: true }));

it("has everything that was acknowledged before the process was killed", async () => {
  const path = join(folder, "skerry.db");
  const writer = spawnCommand(process.execPath, [join(import.meta.dirname, "durability-writer.ts"), path], {
    stdout: "pipe",
    stderr: "ignore",
  });
  const acknowledged: string[] = [];
  for await (const line of createInterface({ input: writer.stdout as Readable })) {
    acknowledged.push(line);
    if (acknowledged.length === 50) writer.kill("SIGKILL");
  }
  if (writer.exitCode === null && writer.signalCode === null) await once(writer, "exit");
  expect(acknowledged.length).toBeGreaterThanOrEqual(50);
  await using store = await openStore(`sqlite:${path}`);
  for (const id of acknowledged) expect(await store.identity.findTeam(id)).toBeDefined();
});
