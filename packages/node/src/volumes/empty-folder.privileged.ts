// Deletes everything in a folder that guests may still change: one of them may have a directory open that was moved here. No link is followed,
// and no path has more than one part.

import { randomBytes } from "node:crypto";
import { closeSync, constants } from "node:fs";
import { opendir, rename, rmdir, unlink } from "node:fs/promises";
import { errnoOf } from "@skerry/base";
import { DIRECTORY, descriptorPath, entryPath, openBeneath } from "@skerry/base/beneath";

/** Deeper directories are moved to the top first, so that a path of any depth takes few descriptors. */
const DEEPEST = 16;
/** A guest that adds files as fast as they are deleted is not waited for. */
const ROUNDS = 1000;

/** Empties the open directory `folder`. What a guest adds meanwhile may stay. */
export async function emptyFolder(folder: number): Promise<void> {
  for (let round = 0; round < ROUNDS; round += 1) if (!(await emptyOnce({ top: folder, folder, depth: 0 }))) return;
}

interface Level {
  readonly top: number;
  readonly folder: number;
  readonly depth: number;
}

/** Returns whether something was moved to the top. */
async function emptyOnce({ top, folder, depth }: Level): Promise<boolean> {
  let hasMoved = false;
  const names = await opendir(descriptorPath(folder), { encoding: "buffer" as BufferEncoding });
  for await (const { name } of names as unknown as AsyncIterable<{ name: Buffer }>) {
    const path = entryPath({ folder, name });
    if (await tryUnlink(path)) continue;
    if (depth === DEEPEST) {
      await quietly(() => rename(path, entryPath({ folder: top, name: randomBytes(8).toString("hex") })));
      hasMoved = true;
      continue;
    }
    await quietly(async () => {
      const below = await openBeneath(folder, name, { flags: DIRECTORY | constants.O_NOFOLLOW, followLinks: false });
      try {
        if (await emptyOnce({ top, folder: below, depth: depth + 1 })) hasMoved = true;
      } finally {
        closeSync(below);
      }
      await rmdir(path);
    });
  }
  return hasMoved;
}

/** Returns false for a directory. */
async function tryUnlink(path: Buffer): Promise<boolean> {
  try {
    await unlink(path);
    return true;
  } catch (error) {
    if (["EISDIR", "EPERM"].includes(errnoOf(error) ?? "")) return false;
    if (errnoOf(error) === "ENOENT") return true;
    throw error;
  }
}

/** Ignores that a guest was faster. */
async function quietly(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!["ENOENT", "ENOTEMPTY", "ENOTDIR", "ELOOP", "EXDEV"].includes(errnoOf(error) ?? "")) throw error;
  }
}
