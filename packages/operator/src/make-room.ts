import { statfs } from "node:fs/promises";
import { releaseReserve } from "@skerry/node/folder";
import type { DataFolder } from "@skerry/setup/folder";

/** Free disk space below which a platform cannot start or stop: records, the pid file and the log need a few MiB. */
const SCARCE_BYTES = 32 * 1024 * 1024;

/** On a full disk, releases the node's reserve. The node allocates it again when there is enough space. */
export async function makeRoom(folder: DataFolder): Promise<void> {
  const { bsize, bavail } = await statfs(folder.root);
  if (bsize * bavail < SCARCE_BYTES) releaseReserve(folder.nodeDir);
}
