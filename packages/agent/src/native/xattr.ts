// Extended attributes of files. Symbolic links are followed. A file on a file system without extended attributes has none.

import { LibcError, libc } from "./libc.ts";

export function listXattrs(path: string | Buffer): string[] {
  const bytes = grow((buffer, size) => libc().listxattr(terminated(path), buffer, size));
  return bytes === undefined
    ? []
    : bytes
        .toString("latin1")
        .split("\0")
        .filter((name) => name !== "");
}

/** Undefined when the attribute does not exist or is unreadable. */
export function readXattr(path: string | Buffer, name: string): Buffer | undefined {
  return grow((buffer, size) => libc().getxattr(terminated(path), name, buffer, size));
}

export function writeXattr(path: string, name: string, value: string): void {
  const bytes = Buffer.from(value, "utf8");
  if (libc().setxattr(path, name, bytes, bytes.length, 0) !== 0) throw new LibcError("setxattr");
}

export function removeXattr(path: string, name: string): void {
  if (libc().removexattr(path, name) !== 0) throw new LibcError("removexattr");
}

// koffi passes a Buffer to C unchanged, so the Buffer has to contain the terminating NUL.
function terminated(path: string | Buffer): string | Buffer {
  return typeof path === "string" ? path : Buffer.concat([path, Buffer.alloc(1)]);
}

// Without a buffer, both calls return the size. The value may grow before the second call, hence the second attempt.
function grow(call: (buffer: Buffer | null, size: number) => number): Buffer | undefined {
  for (let attempt = 0; attempt < 2; attempt++) {
    const size = call(null, 0);
    if (size <= 0) return size === 0 ? Buffer.alloc(0) : undefined;
    const buffer = Buffer.alloc(size);
    const length = call(buffer, size);
    if (length >= 0) return buffer.subarray(0, length);
  }
  return undefined;
}
