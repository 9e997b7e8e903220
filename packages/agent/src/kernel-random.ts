// The agent's random numbers, from the kernel each time. Every generator that keeps a state in memory, Node's own cryptography
// included, gives the same numbers in all sandboxes that are started from one image.

import { closeSync, openSync, readSync } from "node:fs";

const DEVICE = "/dev/urandom";

export function kernelRandomBytes(size: number): Buffer {
  const bytes = Buffer.alloc(size);
  const fd = openSync(DEVICE, "r");
  try {
    for (let filled = 0; filled < size; ) {
      const read = readSync(fd, bytes, filled, size - filled, null);
      // Root in the sandbox can put a file in its place.
      if (read === 0) throw new Error(`${DEVICE} ended`);
      filled += read;
    }
  } finally {
    closeSync(fd);
  }
  return bytes;
}

/** A version 4 UUID. */
export function kernelRandomUuid(): string {
  const bytes = kernelRandomBytes(16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x40, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/** `length` characters of the alphabet, each as likely as any other. */
export function kernelRandomName(length: number, alphabet: string): string {
  const fair = 256 - (256 % alphabet.length);
  let name = "";
  while (name.length < length) {
    for (const byte of kernelRandomBytes(length)) {
      if (byte < fair && name.length < length) name += alphabet[byte % alphabet.length];
    }
  }
  return name;
}
