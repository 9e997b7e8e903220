// Signed file URLs that do not name their sandbox. The SDKs make such URLs when E2B_SANDBOX_URL is set.

import { parseExpiration, type SignedFileRequest, signatureDigest } from "@skerry/wire";

/** The parameters of a signed file URL. */
export interface SignedFile extends SignedFileRequest {
  readonly signature: string;
}

/**
 * - `other`: not a signed file URL.
 * - `other_method`: a signed file URL with a method that no signature allows.
 * - `malformed`: parameters that the agent would reject with any token.
 */
export type SignedUrl = { readonly kind: "signed"; readonly file: SignedFile } | { readonly kind: "other" | "other_method" | "malformed" };

/** The agent's path for files, in its only accepted spelling. */
const FILES_PATH = "/files";

const OPERATIONS: ReadonlyMap<string, SignedFileRequest["operation"]> = new Map([
  ["GET", "read"],
  ["POST", "write"],
]);

/** Parses a request target like the agent, so that both see the same parameters. */
export function readSignedUrl(method: string, target: string): SignedUrl {
  const [path, ...rest] = target.split("?");
  if (path !== FILES_PATH) return { kind: "other" };
  const query = new URLSearchParams(rest.join("?"));
  const [signature] = query.getAll("signature");
  if (signature === undefined) return { kind: "other" };
  const operation = OPERATIONS.get(method);
  if (operation === undefined) return { kind: "other_method" };
  const expirationText = query.get("signature_expiration");
  const expiration = expirationText === null ? undefined : parseExpiration(expirationText);
  if (!signatureDigest(signature) || hasRepeated(query) || (expirationText !== null && expiration === undefined))
    return { kind: "malformed" };
  return {
    kind: "signed",
    file: { path: query.get("path") ?? "", username: query.get("username") ?? "", operation, expiration, signature },
  };
}

function hasRepeated(query: URLSearchParams): boolean {
  return ["path", "username", "signature", "signature_expiration"].some((name) => query.getAll(name).length > 1);
}
