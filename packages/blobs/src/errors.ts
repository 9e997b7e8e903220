export type BlobsErrorCode = "blob_digest_invalid" | "blob_mismatch" | "blob_missing" | "blob_range_invalid";

declare module "@skerry/base/error" {
  interface ErrorCodes {
    readonly blobs: BlobsErrorCode;
  }
}
