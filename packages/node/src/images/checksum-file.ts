import { open } from "node:fs/promises";
import { crc32 } from "node:zlib";

const PIECE_BYTES = 1024 * 1024;
/** Number of buffers kept for reuse. New buffers for each pause would trigger a garbage collection each time. */
const MAX_SPARE = 4;
const spare: Buffer[] = [];

/** Length and CRC-32 of a file. Reads the file in pieces and lets other work run in between, because images have gigabytes. */
export async function checksumFile(path: string): Promise<{ size: number; crc32: number }> {
  const file = await open(path, "r");
  const buffer = spare.pop() ?? Buffer.allocUnsafeSlow(PIECE_BYTES);
  try {
    let size = 0;
    let sum = 0;
    for (;;) {
      const { bytesRead } = await file.read(buffer, 0, PIECE_BYTES, size);
      if (bytesRead === 0) return { size, crc32: sum };
      size += bytesRead;
      sum = crc32(buffer.subarray(0, bytesRead), sum);
    }
  } finally {
    if (spare.length < MAX_SPARE) spare.push(buffer);
    await file.close();
  }
}
