// Version 1 signatures of file URLs. The agent verifies them. The control plane uses them to find the sandbox of a URL.

export interface SignedFileRequest {
  /** As received, not resolved; empty when absent. */
  readonly path: string;
  readonly operation: "read" | "write";
  /** As received; empty when absent, also when the agent will use its default user. */
  readonly username: string;
  /** Unix seconds. */
  readonly expiration: number | undefined;
}

/** `v1_` and the SHA-256 digest in base64 without padding. The last two bits of the last character are zero. */
const SIGNATURE = /^v1_[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]$/;

/** Returns the text whose SHA-256 digest is the signature. */
export function signedText(request: SignedFileRequest, accessToken: string): string {
  const parts = [request.path, request.operation, request.username, accessToken];
  if (request.expiration !== undefined) parts.push(String(request.expiration));
  return parts.join(":");
}

/** Returns the digest of a signature in base64, or undefined if the text is not a version 1 signature. */
export function signatureDigest(signature: string): string | undefined {
  return SIGNATURE.test(signature) ? signature.slice(3) : undefined;
}

/** Parses `signature_expiration`. Returns undefined if it is not a whole number. */
export function parseExpiration(text: string): number | undefined {
  const value = /^[+-]?\d+$/.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(value) ? value : undefined;
}
