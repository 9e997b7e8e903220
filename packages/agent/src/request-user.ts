import { Code, ConnectError, createContextKey, type HandlerContext } from "@connectrpc/connect";
import { findUser, UnknownUserError, type User } from "./accounts/accounts.ts";
import type { AgentState } from "./state.ts";

/** What a request says about its user: the name of its Basic credentials, and the state for the default. */
export interface RequestIdentity {
  readonly state: AgentState;
  /** Undefined: the default user. */
  readonly basicName: string | undefined;
}

export const identityKey = createContextKey<RequestIdentity | undefined>(undefined, { description: "user of the request" });

/** The user that a call acts for. */
export function requestUser(context: HandlerContext): User {
  const identity = context.values.get(identityKey);
  if (!identity) throw new ConnectError("no identity for the request", Code.Internal);
  return identity.basicName === undefined ? defaultUser(identity.state) : basicUser(identity.basicName);
}

/** Throws Connect `unauthenticated` for a name that nobody has: any call with such credentials fails, whatever it does. */
export function basicUser(name: string): User {
  return named(name, `invalid username: '${name}'`);
}

function defaultUser(state: AgentState): User {
  return named(state.defaultUser, `invalid default user: '${state.defaultUser}'`);
}

function named(name: string, message: string): User {
  try {
    return findUser(name);
  } catch (error) {
    if (error instanceof UnknownUserError) throw new ConnectError(message, Code.Unauthenticated);
    throw error;
  }
}

/** The user name of `Authorization: Basic …`; undefined when there is no such header or it names nobody. The password is ignored. */
export function basicName(header: string | undefined): string | undefined {
  const match = /^basic +([A-Za-z0-9+/_-]*={0,2})$/i.exec(header ?? "");
  if (!match) return undefined;
  const text = Buffer.from(match[1] ?? "", "base64").toString("utf8");
  const colon = text.indexOf(":");
  return colon === -1 ? undefined : text.slice(0, colon);
}
