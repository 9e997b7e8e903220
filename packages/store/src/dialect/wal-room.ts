import { closeSync, openSync } from "node:fs";
import { allocateInBackground } from "@skerry/base/linux";

/** Reserved size of the log. SQLite restarts its log after 4 MiB; on a full disk it cannot, so what it writes then is added. */
const WAL_BYTES = 16 * 1024 * 1024;

/**
 * Reserves disk space for the write-ahead log of an open database, so that sandboxes can be ended on a full disk. Changes neither the size
 * nor the content of the file. Without the reservation the database works until the disk is full.
 */
export async function keepWalRoom(databaseFile: string): Promise<void> {
  try {
    const fd = openSync(`${databaseFile}-wal`, "r+");
    try {
      await allocateInBackground(fd, { bytes: WAL_BYTES, keepSize: true, subject: databaseFile });
    } finally {
      closeSync(fd);
    }
  } catch {
    // The disk is full already, or its file system does not support reservations.
  }
}
