// One operation of the public API as data: the router, the checks, the types of its handler and the served document
// all come from here.

import type { IncomingHttpHeaders } from "node:http";
import type { Static, TSchema } from "typebox";
import type { AuthScheme, Caller } from "../keys/authenticate.ts";
import type { ApiServices } from "./services.ts";

export type OperationTag = "sandboxes" | "templates" | "snapshots" | "teams" | "volumes" | "secrets" | "admin" | "platform";

export interface ResponseSpec {
  readonly description: string;
  readonly schema?: TSchema;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface OperationRequest<P, Q, B> {
  readonly caller: Caller;
  readonly params: P;
  readonly query: Q;
  /** Undefined when the operation takes none, or the caller sent none where that is allowed. */
  readonly body: B;
  readonly headers: IncomingHttpHeaders;
  /** When the request came in, before its credentials were looked at. */
  readonly arrivedAt: number;
  /** Aborted when the caller goes away before the answer. */
  readonly signal: AbortSignal;
}

export interface OperationResponse {
  readonly status: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface OperationSpec<P extends TSchema, Q extends TSchema, B extends TSchema> {
  readonly id: string;
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** With `{name}` for each parameter. */
  readonly path: string;
  readonly tag: OperationTag;
  readonly summary: string;
  readonly description?: string;
  readonly deprecated?: boolean;
  /** Empty: anybody may call it. */
  readonly auth: readonly AuthScheme[];
  readonly params?: P;
  readonly query?: Q;
  readonly body?: B;
  readonly bodyOptional?: boolean;
  /** Takes the header `Idempotency-Key`. */
  readonly idempotent?: boolean;
  readonly responses: Readonly<Record<number, ResponseSpec>>;
  /** Whether a client may send it again after an answer that says the platform failed. */
  readonly repeatable: boolean;
  readonly handle: (
    services: ApiServices,
    request: OperationRequest<Static<P>, Static<Q>, Static<B>>,
  ) => OperationResponse | Promise<OperationResponse>;
}

/** An operation whose types are no longer needed: its values have been checked when its handler gets them. */
export type Operation = Omit<OperationSpec<TSchema, TSchema, TSchema>, "handle"> & {
  readonly handle: (
    services: ApiServices,
    request: OperationRequest<unknown, unknown, unknown>,
  ) => OperationResponse | Promise<OperationResponse>;
};

export function defineOperation<P extends TSchema, Q extends TSchema, B extends TSchema>(spec: OperationSpec<P, Q, B>): Operation {
  return spec as unknown as Operation;
}
