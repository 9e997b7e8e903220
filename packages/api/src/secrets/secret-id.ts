import { randomBytes } from "node:crypto";

const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";
const PREFIX = "sec_";
const SUFFIX_LENGTH = 26;
const ID = /^sec_[0-7][0-9a-hjkmnp-tv-z]{25}$/;

/** A new id: `sec_` and a UUID of version 7 in the 26 characters of a TypeID. */
export function newSecretId(now: number): string {
  const bytes = randomBytes(16);
  bytes.writeUIntBE(now, 0, 6);
  bytes.writeUInt8(((bytes[6] ?? 0) & 0x0f) | 0x70, 6);
  bytes.writeUInt8(((bytes[8] ?? 0) & 0x3f) | 0x80, 8);
  let rest = BigInt(`0x${bytes.toString("hex")}`);
  let text = "";
  for (let i = 0; i < SUFFIX_LENGTH; i++) {
    text = ALPHABET[Number(rest & 31n)] + text;
    rest >>= 5n;
  }
  return PREFIX + text;
}

export function isSecretId(text: string): boolean {
  return ID.test(text);
}

export function looksLikeSecretId(text: string): boolean {
  return text.startsWith(PREFIX);
}
