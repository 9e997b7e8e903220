import { ftruncateSync, write, writeSync } from "node:fs";
import { promisify } from "node:util";
import type { ByteSource } from "./tar/byte-source.ts";
import type { Content } from "./tar/read-entries.ts";

const writeLater = promisify(write);

/**
 * Size of one write of a large file. Each passes through another thread, which in gVisor costs as much as copying a few hundred KiB. Smaller
 * files are written at once, without another thread.
 */
const LARGE_BYTES = 1024 * 1024;

/** Writes the content of an entry to an empty file. */
export async function writeContent(fd: number, { size, sparse }: Content, source: ByteSource): Promise<void> {
  const segments = sparse?.segments ?? [{ offset: 0, length: size }];
  for (const { offset, length } of segments) {
    if (length < LARGE_BYTES) writeAll(fd, await source.read(length), offset);
    else await writeLarge(fd, { offset, length }, source);
  }
  if (sparse) ftruncateSync(fd, size);
}

function writeAll(fd: number, bytes: Buffer, offset: number): void {
  for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done, bytes.length - done, offset + done);
}

/** While one buffer is written, the other is filled. */
async function writeLarge(fd: number, { offset, length }: { offset: number; length: number }, source: ByteSource): Promise<void> {
  let [filling, other] = [Buffer.allocUnsafeSlow(LARGE_BYTES), Buffer.allocUnsafeSlow(LARGE_BYTES)];
  let written = Promise.resolve();
  try {
    for (let done = 0; done < length; ) {
      const count = Math.min(LARGE_BYTES, length - done);
      for (let filled = 0; filled < count; ) filled += (await source.readSome(count - filled)).copy(filling, filled);
      await written;
      written = writeAllLater(fd, filling.subarray(0, count), offset + done);
      // Awaited before its buffer is filled again, or at the end.
      written.catch(() => {});
      [filling, other] = [other, filling];
      done += count;
    }
  } finally {
    await written;
  }
}

async function writeAllLater(fd: number, bytes: Buffer, offset: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await writeLater(fd, bytes, done, bytes.length - done, offset + done);
    done += bytesWritten;
  }
}
