import { findUser, UnknownUserError, type User } from "../accounts/accounts.ts";
import { PathError } from "../paths.ts";
import type { AgentState } from "../state.ts";
import { HttpError } from "./exchange.ts";

/** The user whose home and ownership a file request is about. An empty name in the query is a name, not an absence. */
export function fileUser(state: AgentState, username: string | undefined): User {
  const name = username ?? state.defaultUser;
  try {
    return findUser(name);
  } catch (error) {
    if (error instanceof UnknownUserError) throw new HttpError(401, `error looking up user '${name}': ${error.message}`);
    throw error;
  }
}

export function filePath(state: AgentState, path: string, user: User): string {
  // The kernel would be asked for another file, so Node.js does not ask it: an error of the caller's all the same.
  if (path.includes("\0")) throw new HttpError(400, `path '${path}' is invalid: it contains a NUL character`);
  try {
    return state.expand(path, user);
  } catch (error) {
    if (error instanceof PathError) throw new HttpError(400, `error expanding and resolving path '${path}': ${error.message}`);
    throw error;
  }
}
