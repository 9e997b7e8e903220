import "./errors.ts";

export { type BlobDigest, type BlobPage, type BlobRange, type BlobStore, parseBlobDigest } from "./blob-store.ts";
export { openFolderBlobStore } from "./folder-blob-store.ts";
