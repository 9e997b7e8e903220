// Fills the disk of a node or of a sandbox.

import { appendFileSync, mkdirSync, rmSync, statfsSync } from "node:fs";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import { waitUntil } from "@skerry/testkit/wait-until";
import { expect } from "vitest";

const MIB = 2 ** 20;

/** Fills a disk until only `bytes` are free. */
export async function leave(disk: string, bytes: number): Promise<void> {
  const filler = join(disk, "filler");
  rmSync(filler, { recursive: true, force: true });
  mkdirSync(filler);
  await waitUntil("most of the disk is taken, whatever its node makes ready meanwhile", async () => {
    const { bavail, bsize } = statfsSync(disk);
    const tooMuch = bavail * bsize - Math.max(bytes, 4 * MIB);
    if (tooMuch <= 0) return true;
    const fallocate = runCommand("fallocate", ["--length", String(tooMuch), join(filler, "big")]);
    return await fallocate.then(
      () => true,
      () => false,
    );
  });
  if (bytes > 0) return;
  untilFull(() => appendFileSync(join(filler, "rest"), Buffer.alloc(MIB)));
  untilFull(() => appendFileSync(join(filler, "last"), Buffer.alloc(4096)));
}

/** Writes until there is no room. */
export function untilFull(write: (at: number) => void): void {
  expect(() => {
    for (let at = 0; ; at += 1) write(at);
  }).toThrow(/ENOSPC/);
}
