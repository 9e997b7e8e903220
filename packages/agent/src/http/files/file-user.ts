import { findUser, UnknownUserError, type User } from "../../accounts/accounts.ts";
import { assertNoNul, PathError } from "../../paths.ts";
import type { AgentState } from "../../state.ts";
import { HttpError } from "../exchange.ts";

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

/** `problem` begins the message of a refusal; by default it names the path. */
export function filePath(state: AgentState, path: string, user: User, problem = `error expanding and resolving path '${path}'`): string {
  try {
    assertNoNul(path);
    return state.expand(path, user);
  } catch (error) {
    if (error instanceof PathError) throw new HttpError(400, `${problem}: ${error.message}`);
    throw error;
  }
}
