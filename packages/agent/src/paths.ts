// Resolves the paths of requests. REST and RPC share these rules.

import { posix } from "node:path";

export class PathError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "PathError";
  }
}

export interface PathContext {
  readonly home: string;
  /** Directory for an empty path; the home directory when unset. All other relative paths start at the home directory. */
  readonly defaultWorkdir: string | undefined;
}

/** Rejects a path with a NUL character: the kernel would end the path there. Node.js rejects it too, but not with a PathError. */
export function assertNoNul(path: string): void {
  if (path.includes("\0")) throw new PathError("a path can't contain a NUL character");
}

/** Returns absolute paths unchanged, without normalising them, because responses echo them. */
export function expandPath(path: string, context: PathContext): string {
  const wanted = path === "" ? (context.defaultWorkdir ?? "") : path;
  if (wanted.startsWith("~")) {
    if (wanted.length > 1 && wanted[1] !== "/" && wanted[1] !== "\\") throw new PathError("cannot expand user-specific home dir");
    return cleanJoin(context.home, wanted.slice(1));
  }
  if (wanted.startsWith("/")) return wanted;
  return cleanJoin(context.home, wanted);
}

/** Joins without normalising. The path may be echoed to clients, or have one character per byte. */
export function appendName(folder: string, name: string): string {
  if (folder === "" || name === "") return folder + name;
  return folder.endsWith("/") ? folder + name : `${folder}/${name}`;
}

function cleanJoin(base: string, rest: string): string {
  const joined = posix.join(base, rest);
  return joined.length > 1 && joined.endsWith("/") ? joined.slice(0, -1) : joined;
}
