import { rm, statfs } from "node:fs/promises";
import type { DataFolder } from "@skerry/setup/folder";

/** Less than this is nothing, for a start. */
const SCARCE_BYTES = 32 * 1024 * 1024;

/** On a full disk, takes the room that the platform keeps back for this. It makes that again by itself, when there is plenty. */
export async function makeRoom(folder: DataFolder): Promise<void> {
  const { bsize, bavail } = await statfs(folder.root);
  if (bsize * bavail < SCARCE_BYTES) await rm(folder.reserveFile, { force: true });
}
