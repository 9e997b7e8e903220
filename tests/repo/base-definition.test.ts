import { existsSync } from "node:fs";
import { join } from "node:path";
import { parseDockerfile } from "@skerry/dockerfile";
import { expect, test } from "vitest";
import { ROOT, readText } from "./repository.ts";

test("templates/base is a definition that the builder accepts, whose files exist", () => {
  const { steps, notices } = parseDockerfile(readText("templates/base/Dockerfile"));
  expect(notices).toEqual([]);
  const sources = steps.filter(({ type }) => type === "COPY").map(({ args: [source = ""] }) => source);
  expect(sources).toEqual(["packages", "left-out", "files", "reseed-python.sh"]);
  for (const source of sources) expect([source, existsSync(join(ROOT, "templates/base", source))]).toEqual([source, true]);
});
