import type { Dirent } from "node:fs";
import { readdir } from "node:fs/promises";
import { errnoOf } from "@skerry/base";

/** A path for system calls: bytes where it is not UTF-8, and no text is exact. */
export type RawPath = string | Buffer;

export interface Child {
  /** Its name with one character per byte, which sorts as the bytes do. */
  readonly bytes: string;
  readonly isDirectory: boolean;
}

/** What is in a directory, in the order of the names' bytes. */
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
  // It is gone; or it has a name that is not ASCII, and its file system doesn't tell types: Node.js then looks for that name in UTF-8.
  const entries = await readdir(folder, { withFileTypes: true, encoding: "buffer" });
  return entries.map((entry) => Object.assign(entry, { name: entry.name.toString("latin1") }) as unknown as Dirent);
}
