// A disk of a test's own, so that one can be filled without taking anything from the machine.

import { closeSync, mkdtempSync, openSync, rmSync, statfsSync, truncateSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { errnoOf, runCommand } from "@skerry/base";

/** Mounts a new and empty ext4 of this size there. What it takes of the machine's disk goes with its last mount, and with the machine. */
export async function mountSmallDisk(target: string, sizeMb: number): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), "small-disk-"));
  const file = join(dir, "image");
  writeFileSync(file, "");
  try {
    truncateSync(file, sizeMb * 2 ** 20);
    await runCommand("mkfs.ext4", ["-q", "-m", "0", file]);
    await runCommand("mount", ["-o", "loop,discard", file, target]);
  } finally {
    rmSync(dir, { recursive: true });
  }
}

export function freeBytesOf(dir: string): number {
  const { bsize, bavail } = statfsSync(dir);
  return bsize * bavail;
}

/** A file that leaves as many bytes free on the disk of its folder; 0 leaves not one block. Takes no time: nothing is written. */
export async function leaveFree(file: string, bytes: number): Promise<void> {
  const taken = freeBytesOf(dirname(file)) - bytes;
  if (taken > 0) await runCommand("fallocate", ["-l", String(taken - (taken % 4096)), file]).catch(() => {});
  if (bytes > 0) return;
  // What is left is too little for the file system's own records of a large file.
  for (let i = 0; fill(`${file}.${i}`); i += 1);
}

/** Writes until there is no room. False when there was none at all. */
function fill(file: string): boolean {
  const fd = openSync(file, "w");
  let written = 0;
  try {
    for (;;) written += writeSync(fd, Buffer.alloc(64 * 1024));
  } catch (error) {
    if (errnoOf(error) !== "ENOSPC") throw error;
    return written > 0;
  } finally {
    closeSync(fd);
  }
}
