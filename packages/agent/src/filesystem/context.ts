import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import type { User } from "../accounts/accounts.ts";
import { assertNoNul, PathError } from "../paths.ts";
import { requestUser } from "../request-user.ts";
import type { AgentState } from "../state.ts";

export interface FilesystemContext {
  readonly state: AgentState;
}

/** The user of a call, and the call's path resolved for that user. */
export function resolvePath(filesystem: FilesystemContext, path: string, context: HandlerContext): { path: string; user: User } {
  const user = requestUser(context);
  try {
    assertNoNul(path);
    return { path: filesystem.state.expand(path, user), user };
  } catch (error) {
    if (error instanceof PathError) throw new ConnectError(error.message, Code.InvalidArgument);
    throw error;
  }
}
