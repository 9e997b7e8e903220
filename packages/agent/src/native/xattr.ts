// Extended attributes of a file, following symlinks. A file system without them reads as "none".

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

/** Undefined when it is gone or unreadable. */
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

// Bytes go to C as they are, so they have to bring the NUL of a string along.
function terminated(path: string | Buffer): string | Buffer {
  return typeof path === "string" ? path : Buffer.concat([path, Buffer.alloc(1)]);
}

// Both reading calls tell the size when given none; the value may grow in between, hence the second try.
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
