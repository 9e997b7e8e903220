// The port for bytes that move between machines: immutable blobs, named by their digest. A folder is its only implementation so far.
// Trees and memory that sandboxes use are plain local files; a blob is what they are packed into to be moved (see archive/).

import { PlatformError } from "@skerry/base";

/** "sha256:" and 64 hex digits, of the blob's bytes. */
export type BlobDigest = string & { readonly __brand: "BlobDigest" };

/** Throws PlatformError("blob_digest_invalid"). */
export function parseBlobDigest(text: string): BlobDigest {
  if (!/^sha256:[0-9a-f]{64}$/.test(text)) throw new PlatformError("blob_digest_invalid", `not a blob digest: ${text.slice(0, 100)}`);
  return text as BlobDigest;
}

export interface BlobStore {
  /**
   * Stores all of `bytes` and returns their digest. The blob appears at once and whole, and survives a power loss when this returns.
   * Throws PlatformError("blob_mismatch") when the digest is not the expected one. A failure leaves no blob. Reads `bytes` no faster than
   * they can be stored.
   */
  put(bytes: AsyncIterable<Uint8Array>, options?: { readonly expected?: BlobDigest }): Promise<BlobDigest>;
  /**
   * The bytes of a blob, or a part of them. Throws PlatformError("blob_missing") before the first byte, or PlatformError("blob_range_invalid")
   * when the range does not lie in the blob. Does not compare the bytes with the digest. The caller reads to the end or stops the iteration.
   */
  get(digest: BlobDigest, range?: BlobRange): Promise<AsyncIterable<Uint8Array>>;
  /** The size of a blob in bytes; undefined when it does not exist. */
  size(digest: BlobDigest): Promise<number | undefined>;
  /** Up to `limit` digests after `after`, in ascending order. Fewer than `limit` are the last ones. */
  list(page?: BlobPage): Promise<readonly BlobDigest[]>;
  /** Does nothing when the blob does not exist. Readers that have begun may read on. */
  delete(digest: BlobDigest): Promise<void>;
}

export interface BlobRange {
  readonly offset: number;
  readonly length: number;
}

export interface BlobPage {
  readonly after?: BlobDigest;
  /** Default: 1,000. */
  readonly limit?: number;
}
