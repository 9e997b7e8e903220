// Signed file URLs, version 1. A client with the access token can let others read or write one path for a limited time.

export interface SignedRequest {
  /** As received, not resolved; empty when absent. */
  readonly path: string;
  readonly operation: "read" | "write";
  /** As received; empty when absent, even if a default user applies. */
  readonly username: string;
  /** Unix seconds. */
  readonly expiration: number | undefined;
}

export function fileSignature(request: SignedRequest, token: string): string {
  const parts = [request.path, request.operation, request.username, token];
  if (request.expiration !== undefined) parts.push(String(request.expiration));
  // Loaded on first use: the module is one of Node's largest, a megabyte in each sandbox, and most sandboxes sign nothing.
  const { createHash } = process.getBuiltinModule("node:crypto");
  return `v1_${createHash("sha256").update(parts.join(":"), "utf8").digest("base64").replace(/=+$/, "")}`;
}
