import { type SignedFileRequest, signedText } from "@skerry/wire";

/** Returns the version 1 signature of a file URL. A client with the access token can let others read or write one path for a limited time. */
export function fileSignature(request: SignedFileRequest, token: string): string {
  // Loaded on first use: the module is one of Node's largest, a megabyte in each sandbox, and most sandboxes sign nothing.
  const { createHash } = process.getBuiltinModule("node:crypto");
  return `v1_${createHash("sha256").update(signedText(request, token), "utf8").digest("base64").replace(/=+$/, "")}`;
}
