// The definition of the base template, in templates/base of the repository.

import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";

/** Increment it when what the builder makes of the definition changes. */
const REVISION = 2;

export const DEFINITION_DIR = join(import.meta.dirname, "../../../../templates/base");

const read = (name: string): string => readFileSync(join(DEFINITION_DIR, name), "utf8");
const lines = (name: string): string[] =>
  read(name)
    .split("\n")
    .filter((line) => line !== "");

/** Debian packages of the base template, with what users need them for. */
export const BASE_PACKAGES: Readonly<Record<string, string>> = Object.fromEntries(
  lines("build/packages").map((line) => {
    const [name = "", ...why] = line.split("#");
    return [name.trim(), why.join("#").trim()];
  }),
);

/** Paths that are left out: not needed in a sandbox, and a third of the size. */
export const LEFT_OUT = lines("build/left-out");

/** Files of the template, by path. */
export const BASE_FILES: Readonly<Record<string, string>> = Object.fromEntries(
  readdirSync(join(DEFINITION_DIR, "files"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(join(DEFINITION_DIR, "files"), join(entry.parentPath, entry.name)))
    .toSorted()
    .map((path) => [path, read(join("files", path))]),
);

/** The rest of the definition, by path. */
const DEFINITION: Readonly<Record<string, string>> = Object.fromEntries(
  [
    "Dockerfile",
    ...readdirSync(join(DEFINITION_DIR, "build"))
      .toSorted()
      .map((name) => `build/${name}`),
  ].map((path) => [path, read(path)]),
);

/** Identifies the template that build-base.ts would build now. */
export function recipeHash(inputs: {
  distribution: string;
  arch: string;
  nodeVersion: string;
  npmVersion: string;
  koffiDigest: string;
}): string {
  return createHash("sha256")
    .update(JSON.stringify([REVISION, DEFINITION, BASE_FILES, inputs]))
    .digest("hex");
}
