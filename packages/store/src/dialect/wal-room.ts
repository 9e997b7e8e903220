import { closeSync, openSync } from "node:fs";
import { allocateInBackground } from "@skerry/base/linux";

/** SQLite begins at the front of its log again after every 4 MiB; where it can't, for a full disk, there is as much again. */
const WAL_BYTES = 8 * 1024 * 1024;

/**
 * Takes room on the disk for the write-ahead log of an open database, before it is needed: on a full disk, what is being ended can still be
 * written down. Neither the size nor the content of the file changes. Without that room the database works as well, until the disk is full.
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
    // The disk is full already, or its file system can't do that.
  }
}
