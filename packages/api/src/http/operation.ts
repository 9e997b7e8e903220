// One operation of the public API as data. The router, the checks, the types of the handler and the served document are derived from it.

import type { IncomingHttpHeaders } from "node:http";
import type { Static, TSchema } from "typebox";
import type { AuthScheme } from "../keys/authenticate.ts";
import type { Caller } from "../keys/caller.ts";
import type { NeededScope } from "../keys/scopes.ts";
import type { ApiServices } from "./services.ts";

export type OperationTag = "sandboxes" | "templates" | "snapshots" | "teams" | "volumes" | "secrets" | "events" | "admin" | "platform";

export interface ResponseSpec {
  readonly description: string;
  readonly schema?: TSchema;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface OperationRequest<P, Q, B> {
  readonly caller: Caller;
  readonly params: P;
  readonly query: Q;
  /** Undefined when the operation takes no body, or when an optional body is missing. */
  readonly body: B;
  readonly headers: IncomingHttpHeaders;
  /** When the request arrived, before its credentials were checked. */
  readonly arrivedAt: number;
  /** Aborted when the caller disconnects before the answer. */
  readonly signal: AbortSignal;
  /** Checks the credentials once more, for an answer that lasts. Throws when they are not valid any more. */
  readonly recheck: () => Promise<unknown>;
}

export interface OperationResponse {
  readonly status: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** For operations on what nobody else may learn. */
export interface Confidential {
  /** The only message of a failure with this status. */
  readonly messages: Readonly<Record<number, string>>;
}

export interface OperationSpec<P extends TSchema, Q extends TSchema, B extends TSchema> {
  readonly id: string;
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** With `{name}` for each path parameter. */
  readonly path: string;
  readonly tag: OperationTag;
  readonly summary: string;
  readonly description?: string;
  readonly deprecated?: boolean;
  /** The credentials that the operation accepts. Empty for a public operation. */
  readonly auth: readonly AuthScheme[];
  /** What the caller's key, token or role must allow: a read or a change of what. `docs/teams.md` lists all. */
  readonly scope: NeededScope;
  /**
   * Whether the operation itself keeps to the sandboxes that a key is limited to. Operations with `{sandboxID}` in their path need not.
   * Otherwise such keys can't call an operation on sandboxes.
   */
  readonly keepsToMetadata?: boolean;
  readonly params?: P;
  readonly query?: Q;
  readonly body?: B;
  readonly bodyOptional?: boolean;
  /** Whether the operation accepts the header `Idempotency-Key`. */
  readonly idempotent?: boolean;
  /** No answer may be cached, and the messages of failures are fixed. */
  readonly confidential?: Confidential;
  readonly responses: Readonly<Record<number, ResponseSpec>>;
  /** Whether a client may repeat the request after a failure of the platform. */
  readonly repeatable: boolean;
  readonly handle: (
    services: ApiServices,
    request: OperationRequest<Static<P>, Static<Q>, Static<B>>,
  ) => OperationResponse | Promise<OperationResponse>;
}

/** An operation without the types of its values, which are checked before its handler runs. */
export type Operation = Omit<OperationSpec<TSchema, TSchema, TSchema>, "handle"> & {
  readonly handle: (
    services: ApiServices,
    request: OperationRequest<unknown, unknown, unknown>,
  ) => OperationResponse | Promise<OperationResponse>;
};

export function defineOperation<P extends TSchema, Q extends TSchema, B extends TSchema>(spec: OperationSpec<P, Q, B>): Operation {
  return spec as unknown as Operation;
}
