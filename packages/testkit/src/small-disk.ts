// Small disks for tests, which a test can fill without taking space from the machine.

import { closeSync, mkdtempSync, openSync, rmSync, statfsSync, truncateSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { errnoOf, runCommand } from "@skerry/base";

/** Mounts a new ext4 file system of this size. Its space on the machine's disk is freed with its last mount, or when the machine stops. */
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

/** Allocates a file that leaves `bytes` bytes on the disk of its folder, without writing; 0 leaves no block. */
export async function leaveFree(file: string, bytes: number): Promise<void> {
  const taken = freeBytesOf(dirname(file)) - bytes;
  if (taken > 0) await runCommand("fallocate", ["-l", String(taken - (taken % 4096)), file]).catch(() => {});
  if (bytes > 0) return;
  // The rest is too small for the metadata of a large file.
  for (let i = 0; fill(`${file}.${i}`); i += 1);
}

/** Writes until the disk is full. Returns false when it was already full. */
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
