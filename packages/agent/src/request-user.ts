import { Code, ConnectError, createContextKey, type HandlerContext } from "@connectrpc/connect";
import { findUser, UnknownUserError, type User } from "./accounts/accounts.ts";
import { basicName } from "./basic-user.ts";
import type { AgentState } from "./state.ts";

export const stateKey = createContextKey<AgentState | undefined>(undefined, { description: "the agent's state" });

/** The user that an RPC acts for: the user of its Basic credentials, which were checked before, or the default user. */
export function requestUser(context: HandlerContext): User {
  const state = context.values.get(stateKey);
  if (!state) throw new ConnectError("the request has no agent state", Code.Internal);
  const name = basicName(context.requestHeader.get("Authorization") ?? undefined);
  try {
    return findUser(name ?? state.defaultUser);
  } catch (error) {
    if (!(error instanceof UnknownUserError)) throw error;
    throw new ConnectError(
      name === undefined ? `invalid default user: '${state.defaultUser}'` : `invalid username: '${name}'`,
      Code.Unauthenticated,
    );
  }
}
