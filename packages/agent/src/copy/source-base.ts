// Which part of an archive is copied, and the name that an entry has below it.

import type { BytePath } from "./byte-path.ts";
import { ArchiveError } from "./errors.ts";

const GLOB = /[*?[{]/;

/** The path before the first component with a glob character, as components: none for the whole archive. */
export function sourceBase(source: BytePath): readonly string[] {
  const base: string[] = [];
  for (const part of source.split("/")) {
    if (GLOB.test(part)) break;
    if (part === "..") base.pop();
    else if (part !== "" && part !== ".") base.push(part);
  }
  return base;
}

/** The components of an entry's name. A leading slash means nothing, as in every other program; ".." is refused. */
export function entryParts(name: BytePath): readonly string[] {
  const parts = name.split("/").filter((part) => part !== "" && part !== ".");
  if (parts.includes("..")) throw new ArchiveError('the archive has a path with ".."');
  return parts;
}

/** The components below the base: none for the base itself, undefined for an entry outside it. */
export function below(base: readonly string[], parts: readonly string[]): readonly string[] | undefined {
  if (parts.length < base.length || base.some((part, index) => parts[index] !== part)) return undefined;
  return parts.slice(base.length);
}
