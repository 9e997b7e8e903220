// Random numbers that come from the kernel each time. A generator with state in memory, Node's own cryptography included, returns the
// same numbers in all sandboxes that are started from one image.

import { closeSync, openSync, readSync } from "node:fs";

const DEVICE = "/dev/urandom";

export function kernelRandomBytes(size: number): Buffer {
  const bytes = Buffer.alloc(size);
  const fd = openSync(DEVICE, "r");
  try {
    for (let filled = 0; filled < size; ) {
      const read = readSync(fd, bytes, filled, size - filled, null);
      // Root in the sandbox can replace the device by an ordinary file.
      if (read === 0) throw new Error(`${DEVICE} ended early`);
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

/** A string of `length` characters from the alphabet, with a uniform distribution. */
export function kernelRandomName(length: number, alphabet: string): string {
  // Larger bytes would favour the first characters of the alphabet.
  const fair = 256 - (256 % alphabet.length);
  let name = "";
  while (name.length < length) {
    for (const byte of kernelRandomBytes(length)) {
      if (byte < fair && name.length < length) name += alphabet[byte % alphabet.length];
    }
  }
  return name;
}
