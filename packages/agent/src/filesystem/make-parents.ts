import { closeSync, constants, fchownSync, mkdirSync, openSync } from "node:fs";
import { chown, mkdir, stat } from "node:fs/promises";
import { posix } from "node:path";
import { errnoOf } from "@skerry/base";
import type { Credentials } from "../accounts/accounts.ts";
import { currentHub } from "./watching/current-hub.ts";

/** The path or one of its ancestors exists and is not a directory. */
export class NotADirectoryError extends Error {
  constructor(path: string) {
    super(`path is a file: ${path}`);
    this.name = "NotADirectoryError";
  }
}

/**
 * Makes a directory and its missing ancestors, top down, all owned by the user. Existing directories keep their mode and owner.
 * Several requests may do this at the same time for one path.
 */
export async function makeDirectories(path: string, owner: Credentials): Promise<void> {
  const missing: string[] = [];
  for (let current = path; ; current = posix.dirname(current)) {
    const kind = await kindOf(current);
    if (kind === "directory") break;
    if (kind === "other") throw new NotADirectoryError(current);
    missing.push(current);
    if (current === "/" || current === ".") break;
  }
  for (const folder of missing.reverse()) {
    try {
      await makeOwned(folder, owner);
    } catch (error) {
      if (errnoOf(error) !== "EEXIST") throw error;
      if ((await kindOf(folder)) !== "directory") throw new NotADirectoryError(folder);
    }
  }
}

// While somebody watches, both steps run without a pause. Otherwise clients would see the change of owner once or twice, by chance.
// `settle` makes sure that the new directory is watched before the first file is created in it.
async function makeOwned(folder: string, owner: Credentials): Promise<void> {
  const hub = currentHub();
  if (hub) {
    mkdirSync(folder, 0o755);
    own(folder, owner);
    await hub.settle();
  } else {
    await mkdir(folder, 0o755);
    await chown(folder, owner.uid, owner.gid);
  }
}

// When a chown changes nothing, gVisor notifies watchers only if the directory is open. Linux always does.
function own(folder: string, owner: Credentials): void {
  const opened = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    fchownSync(opened, owner.uid, owner.gid);
  } finally {
    closeSync(opened);
  }
}

async function kindOf(path: string): Promise<"directory" | "other" | "missing"> {
  try {
    return (await stat(path)).isDirectory() ? "directory" : "other";
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return "missing";
    // An ancestor is a file: the walk upwards finds it.
    if (errnoOf(error) === "ENOTDIR") return "missing";
    throw error;
  }
}
