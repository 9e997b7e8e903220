// A part of a file through two buffers that are used over and over: one is filled while the other is sent.
//
// Why not a read stream: it takes fresh memory for each piece, whose pages gVisor has to bring in one by one.

import type { FileHandle } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import type { ByteRange } from "./ranges.ts";

/** In gVisor each read takes its way through another thread, which costs as much as a few hundred KiB. */
const CHUNK_BYTES = 1024 * 1024;
/** Beyond this many at once each gets less: those that wait for slow clients must not add up to the sandbox's memory. */
const LARGE_CHUNKS = 8;
const SMALL_CHUNK_BYTES = 128 * 1024;

let underWay = 0;

/** Resolves once the kernel has taken the last byte. Rejects when the connection or the file ends before that. */
export async function sendRange(file: FileHandle, range: ByteRange, res: ServerResponse): Promise<void> {
  const chunkBytes = underWay < LARGE_CHUNKS ? CHUNK_BYTES : SMALL_CHUNK_BYTES;
  underWay += 1;
  try {
    await sendChunks({ file, range, chunkBytes }, res);
  } finally {
    underWay -= 1;
  }
}

async function sendChunks(
  { file, range, chunkBytes }: { file: FileHandle; range: ByteRange; chunkBytes: number },
  res: ServerResponse,
): Promise<void> {
  const length = range.end - range.start;
  const size = Math.min(chunkBytes, length);
  let filling = Buffer.allocUnsafeSlow(size);
  let spare = length > size ? Buffer.allocUnsafeSlow(size) : filling;
  let sent = Promise.resolve();
  for (let at = range.start; at < range.end; ) {
    const { bytesRead } = await file.read(filling, 0, Math.min(size, range.end - at), at);
    if (bytesRead === 0) throw new Error("the file became shorter while it was sent");
    await sent;
    sent = send(res, filling.subarray(0, bytesRead));
    // Awaited before its buffer is filled again, or below.
    sent.catch(() => {});
    at += bytesRead;
    [filling, spare] = [spare, filling];
  }
  await sent;
}

function send(res: ServerResponse, bytes: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    const onClose = () => reject(new Error("the connection was closed while a file was sent"));
    if (res.closed) return onClose();
    // Nobody calls back for what still waits for its connection when that goes.
    res.once("close", onClose);
    res.write(bytes, (error) => {
      res.off("close", onClose);
      if (error) reject(error);
      else resolve();
    });
  });
}
