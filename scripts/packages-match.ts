// Exit code 0 when node_modules holds what package-lock.json asks for, 1 when not. Called by ./skerry, before any
// package can be imported.

import { readFileSync } from "node:fs";
import { join } from "node:path";

interface Lock {
  readonly packages: Readonly<Record<string, { readonly version?: string; readonly integrity?: string; readonly optional?: boolean }>>;
}

const root = process.argv[2] ?? ".";
const read = (path: string): Lock => JSON.parse(readFileSync(join(root, path), "utf8")) as Lock;
const wanted = read("package-lock.json").packages;
const installed = read("node_modules/.package-lock.json").packages;

const matches = Object.entries(wanted).every(([path, entry]) => {
  if (!path.startsWith("node_modules/")) return true;
  const found = installed[path];
  // Packages for other processors and systems are optional, and not installed here.
  if (found === undefined) return entry.optional === true;
  return found.version === entry.version && found.integrity === entry.integrity;
});
process.exit(matches ? 0 : 1);
