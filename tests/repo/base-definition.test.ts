import { existsSync } from "node:fs";
import { join } from "node:path";
import { parseDockerfile } from "@skerry/dockerfile";
import { readShipped, shippedNames } from "@skerry/operator";
import { SITE_VARIABLES } from "@skerry/wire";
import { expect, test } from "vitest";
import { ROOT, readText } from "./repository.ts";

test("templates/base is a definition that the builder accepts, whose files exist", () => {
  const { steps, notices } = parseDockerfile(readText("templates/base/Dockerfile"));
  expect(notices).toEqual([]);
  const sources = steps.filter(({ type }) => type === "COPY").map(({ args: [source = ""] }) => source);
  expect(sources).toEqual(["build", "files"]);
  for (const source of sources) expect([source, existsSync(join(ROOT, "templates/base", source))]).toEqual([source, true]);
});

test.each(shippedNames())("templates/%s is a definition that the builder accepts, whose files exist", async (name) => {
  const { steps, notices } = parseDockerfile(readText(`templates/${name}/Dockerfile`));
  expect(notices).toEqual([]);
  const size = { cpuCount: expect.any(Number), memoryMB: expect.any(Number) };
  expect(await readShipped(name)).toMatchObject({ fromTemplate: "base", ...size });
  for (const { args } of steps.filter(({ type }) => type === "COPY")) {
    expect([args[0], existsSync(join(ROOT, "templates", name, args[0] ?? ""))]).toEqual([args[0], true]);
  }
});

test("sudo in the template base keeps the variables of the operator's site", () => {
  const kept = [...readText("templates/base/files/etc/sudoers.d/user").matchAll(/env_keep \+= "([^"]+)"/g)].flatMap(([, names = ""]) =>
    names.split(" "),
  );
  expect(kept.toSorted()).toEqual(["NODE_OPTIONS", ...SITE_VARIABLES].toSorted());
});
