import { equalSecrets, headerToken } from "../access.ts";
import { type Exchange, HttpError, single } from "../exchange.ts";
import { fileSignature } from "./signature.ts";

/** The check of the file routes: the token, or a signature made with it. */
export function assertFileAccess(exchange: Exchange, operation: "read" | "write"): void {
  const { query, state } = exchange;
  const signature = single(query, "signature");
  const expiration = parseExpiration(single(query, "signature_expiration"));
  const request = { path: single(query, "path") ?? "", username: single(query, "username") ?? "", operation, expiration };
  if (state.accessToken === undefined) return;
  const token = headerToken(exchange.req);
  if (token !== undefined && token !== "") {
    if (!equalSecrets(token, state.accessToken)) throw new HttpError(401, "access token present in header but does not match");
    return;
  }
  if (signature === undefined) throw new HttpError(401, "missing signature query parameter");
  if (!equalSecrets(signature, fileSignature(request, state.accessToken))) throw new HttpError(401, "invalid signature");
  if (expiration !== undefined && expiration < Math.floor(Date.now() / 1000)) throw new HttpError(401, "signature is already expired");
}

function parseExpiration(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const value = /^[+-]?\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(value)) {
    throw new HttpError(400, `Invalid format for parameter signature_expiration: '${text}' is not a whole number`, "text");
  }
  return value;
}
