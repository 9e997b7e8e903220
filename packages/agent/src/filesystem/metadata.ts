// Clients' metadata of a file is stored in the file's extended attributes, so it moves with the file.

import { isUtf8 } from "node:buffer";
import { errnoOf } from "@skerry/base";
import { listXattrs, readXattr, removeXattr, writeXattr } from "../native/xattr.ts";

const PREFIX = "user.e2b.";
/** The kernel's limit of 255 bytes on attribute names, without PREFIX. */
const MAX_KEY_BYTES = 246;
/** Limit of the specification on all names (with PREFIX) and values together. */
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

/** Replaces all metadata and keeps other attributes. On a file system without extended attributes it does nothing. */
export function replaceMetadata(path: string, metadata: Metadata): void {
  try {
    for (const name of listXattrs(path)) if (name.startsWith(PREFIX)) removeXattr(path, name);
    for (const [key, value] of Object.entries(metadata)) writeXattr(path, PREFIX + key, value);
  } catch (error) {
    if (["ENOTSUP", "EOPNOTSUPP"].includes(errnoOf(error) ?? "")) return;
    throw error;
  }
}

/** Reads the `X-Metadata-*` headers from Node's raw list, which keeps repeated headers apart. The first one of a name counts. */
export function metadataOf(rawHeaders: readonly string[]): Metadata {
  // A Map, because names such as `constructor` exist in every plain object.
  const metadata = new Map<string, string>();
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = (rawHeaders[index] ?? "").toLowerCase();
    const key = name.startsWith("x-metadata-") ? name.slice("x-metadata-".length) : "";
    if (key !== "" && !metadata.has(key)) metadata.set(key, rawHeaders[index + 1] ?? "");
  }
  return Object.fromEntries(metadata);
}

/** The error message for invalid metadata; undefined when the metadata is valid. */
export function metadataProblem(metadata: Metadata): string | undefined {
  let total = 0;
  for (const [key, value] of Object.entries(metadata)) {
    if (!/^[\x20-\x7e]*$/.test(key)) return `invalid metadata: key "${key}" has characters outside printable ASCII`;
    if (!/^[\x20-\x7e]*$/.test(value)) return `invalid metadata: the value of "${key}" has characters outside printable ASCII`;
    if (key.length > MAX_KEY_BYTES) return `invalid metadata: key "${key}" exceeds ${MAX_KEY_BYTES} bytes`;
    total += PREFIX.length + key.length + value.length;
  }
  return total > MAX_TOTAL_BYTES ? `invalid metadata: ${total} bytes exceed the limit of ${MAX_TOTAL_BYTES}` : undefined;
}
