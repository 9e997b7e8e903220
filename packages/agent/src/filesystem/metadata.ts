// File metadata of clients lives in extended attributes of the file itself, so it moves with it.

import { isUtf8 } from "node:buffer";
import { errnoOf } from "@skerry/base";
import { listXattrs, readXattr, removeXattr, writeXattr } from "../native/xattr.ts";

const PREFIX = "user.e2b.";
const MAX_KEY_BYTES = 246;
const MAX_TOTAL_BYTES = 4096;

export type Metadata = Readonly<Record<string, string>>;

export function readMetadata(path: string | Buffer): Metadata {
  const entries: [string, string][] = [];
  for (const raw of listXattrs(path)) {
    if (!raw.startsWith(PREFIX)) continue;
    const key = Buffer.from(raw.slice(PREFIX.length), "latin1");
    const value = readXattr(path, raw);
    if (value && isUtf8(key) && isUtf8(value)) entries.push([key.toString("utf8"), value.toString("utf8")]);
  }
  return Object.fromEntries(entries);
}

/** Replaces the whole set; attributes of others stay. Where the file system has none, nothing is stored and nothing fails. */
export function replaceMetadata(path: string, metadata: Metadata): void {
  try {
    for (const name of listXattrs(path)) if (name.startsWith(PREFIX)) removeXattr(path, name);
    for (const [key, value] of Object.entries(metadata)) writeXattr(path, PREFIX + key, value);
  } catch (error) {
    if (["ENOTSUP", "EOPNOTSUPP"].includes(errnoOf(error) ?? "")) return;
    throw error;
  }
}

/** The `X-Metadata-*` headers of a request from Node's raw list (its joined form would mix repeated ones). The first of a name counts. */
export function metadataOf(rawHeaders: readonly string[]): Metadata {
  // A map: names such as `constructor` are there in every plain object.
  const metadata = new Map<string, string>();
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = (rawHeaders[index] ?? "").toLowerCase();
    const key = name.startsWith("x-metadata-") ? name.slice("x-metadata-".length) : "";
    if (key !== "" && !metadata.has(key)) metadata.set(key, rawHeaders[index + 1] ?? "");
  }
  return Object.fromEntries(metadata);
}

/** What is wrong with it; undefined when nothing is. */
export function metadataProblem(metadata: Metadata): string | undefined {
  let total = 0;
  for (const [key, value] of Object.entries(metadata)) {
    if (!/^[\x20-\x7e]*$/.test(key)) return `invalid metadata: key "${key}" has characters outside printable ASCII`;
    if (!/^[\x20-\x7e]*$/.test(value)) return `invalid metadata: the value of "${key}" has characters outside printable ASCII`;
    if (key.length > MAX_KEY_BYTES) return `invalid metadata: key "${key}" is longer than ${MAX_KEY_BYTES} bytes`;
    total += PREFIX.length + key.length + value.length;
  }
  return total > MAX_TOTAL_BYTES ? `invalid metadata: ${total} bytes are more than ${MAX_TOTAL_BYTES}` : undefined;
}
