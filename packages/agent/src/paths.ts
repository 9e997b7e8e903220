// Which file a path of a request means. REST and RPC share these rules.

import { posix } from "node:path";

export class PathError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "PathError";
  }
}

export interface PathContext {
  readonly home: string;
  /** What an empty path means; unset: the home directory. Anything relative goes to the home directory all the same. */
  readonly defaultWorkdir: string | undefined;
}

/** For paths of files: the kernel would take it for another one, so Node.js does not ask it, and throws an error of its own. */
export function assertNoNul(path: string): void {
  if (path.includes("\0")) throw new PathError("a path can't contain a NUL character");
}

/** Absolute paths come back untouched, not even normalised: clients get them echoed. */
export function expandPath(path: string, context: PathContext): string {
  const wanted = path === "" ? (context.defaultWorkdir ?? "") : path;
  if (wanted.startsWith("~")) {
    if (wanted.length > 1 && wanted[1] !== "/" && wanted[1] !== "\\") throw new PathError("cannot expand user-specific home dir");
    return cleanJoin(context.home, wanted.slice(1));
  }
  if (wanted.startsWith("/")) return wanted;
  return cleanJoin(context.home, wanted);
}

/** Joins without normalising: `folder` and `name` may be paths that clients get echoed, or text with one character per byte. */
export function appendName(folder: string, name: string): string {
  if (folder === "" || name === "") return folder + name;
  return folder.endsWith("/") ? folder + name : `${folder}/${name}`;
}

function cleanJoin(base: string, rest: string): string {
  const joined = posix.join(base, rest);
  return joined.length > 1 && joined.endsWith("/") ? joined.slice(0, -1) : joined;
}
