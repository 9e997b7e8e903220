import type { FileHandle } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import type { ByteRange } from "./ranges.ts";
import { TransferBuffers } from "./transfer-buffers.ts";

/** Resolves when the kernel has accepted the last byte. Rejects when the connection or the file ends before that. */
export async function sendRange(file: FileHandle, range: ByteRange, res: ServerResponse): Promise<void> {
  using buffers = new TransferBuffers(range.end - range.start);
  let sent = Promise.resolve();
  for (let at = range.start; at < range.end; ) {
    const { filling } = buffers;
    const { bytesRead } = await file.read(filling, 0, Math.min(filling.length, range.end - at), at);
    if (bytesRead === 0) throw new Error("the file became shorter while it was sent");
    await sent;
    sent = send(res, filling.subarray(0, bytesRead));
    // Awaited before its buffer is reused, or after the loop.
    sent.catch(() => {});
    buffers.swap();
    at += bytesRead;
  }
  await sent;
}

function send(res: ServerResponse, bytes: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    const onClose = () => reject(new Error("the connection was closed while a file was sent"));
    if (res.closed) return onClose();
    // When the connection closes, Node.js does not call back for data that is still queued.
    res.once("close", onClose);
    res.write(bytes, (error) => {
      res.off("close", onClose);
      if (error) reject(error);
      else resolve();
    });
  });
}
