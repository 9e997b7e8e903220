// What the file routes share: access check, user, path, and missing parent directories.

import { posix } from "node:path";
import { asError } from "@skerry/base";
import { parseExpiration } from "@skerry/wire";
import { type Credentials, findUser, UnknownUserError, type User } from "../../accounts/accounts.ts";
import { makeDirectories } from "../../filesystem/make-parents.ts";
import { assertNoNul, PathError } from "../../paths.ts";
import type { AgentState } from "../../state.ts";
import { equalSecrets, headerToken } from "../access.ts";
import { type Exchange, HttpError, single } from "../exchange.ts";
import { fileSignature } from "./signature.ts";

/** Checks the access to a file route: the token, or a signature that was made with it. */
export function assertFileAccess(exchange: Exchange, operation: "read" | "write"): void {
  const { query, state } = exchange;
  const signature = single(query, "signature");
  const expiration = expirationOf(single(query, "signature_expiration"));
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

function expirationOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const value = parseExpiration(text);
  if (value === undefined) {
    throw new HttpError(400, `Invalid format for parameter signature_expiration: '${text}' is not a whole number`, "text");
  }
  return value;
}

/** The user whose home directory and ownership apply. An empty name in the query counts as a name, not as absent. */
export function fileUser(state: AgentState, username: string | undefined): User {
  const name = username ?? state.defaultUser;
  try {
    return findUser(name);
  } catch (error) {
    if (error instanceof UnknownUserError) throw new HttpError(401, `error looking up user '${name}': ${error.message}`);
    throw error;
  }
}

/** Resolves the path for the user. `problem` is the beginning of the error message; by default it names the path. */
export function filePath(state: AgentState, path: string, user: User, problem = `error expanding and resolving path '${path}'`): string {
  try {
    assertNoNul(path);
    return state.expand(path, user);
  } catch (error) {
    if (error instanceof PathError) throw new HttpError(400, `${problem}: ${error.message}`);
    throw error;
  }
}

/** Makes the missing directories above a file that is about to be written. */
export async function makeParents(path: string, owner: Credentials): Promise<void> {
  try {
    await makeDirectories(posix.dirname(path), owner);
  } catch (error) {
    throw new HttpError(500, `error ensuring directories: ${asError(error).message}`);
  }
}
