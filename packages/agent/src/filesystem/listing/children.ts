import type { Dirent } from "node:fs";
import { readdir } from "node:fs/promises";
import { errnoOf } from "@skerry/base";

/** A path for system calls: in bytes if it is not UTF-8, because no string represents it exactly. */
export type RawPath = string | Buffer;

export interface Child {
  /** The name with one character per byte, which sorts like the bytes. */
  readonly bytes: string;
  readonly isDirectory: boolean;
}

/** The content of a directory, sorted by the bytes of the names. */
export async function readChildren(folder: RawPath): Promise<Child[]> {
  const children = (await readEntries(folder)).map((entry) => ({ bytes: entry.name, isDirectory: entry.isDirectory() }));
  return children.sort((a, b) => (a.bytes < b.bytes ? -1 : 1));
}

async function readEntries(folder: RawPath): Promise<Dirent[]> {
  try {
    return await readdir(folder, { withFileTypes: true, encoding: "latin1" });
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") throw error;
  }
  // The folder is gone. Or it holds a name that is not ASCII, and the file system reports no types: Node.js then looks up a wrong name.
  const entries = await readdir(folder, { withFileTypes: true, encoding: "buffer" });
  return entries.map((entry) => Object.assign(entry, { name: entry.name.toString("latin1") }) as unknown as Dirent);
}
