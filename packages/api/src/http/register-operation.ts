// Makes a route of an operation. The order of the checks is part of the contract: credentials, path and query, body, and then the
// operation itself.

import type { Clock, Logger } from "@skerry/base";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { databaseUnavailable, validationError } from "../errors.ts";
import type { Authenticate, Caller } from "../keys/authenticate.ts";
import { type Check, createCheck, readQuery } from "./input/check.ts";
import type { Operation } from "./operation.ts";
import { NO_STORE } from "./output/encode-error.ts";
import type { ApiServices } from "./services.ts";

interface Checks {
  readonly params: Check | undefined;
  readonly query: Check | undefined;
  readonly body: Check | undefined;
}

export interface HttpDeps {
  readonly services: ApiServices;
  readonly authenticate: Authenticate;
  readonly clock: Clock;
  readonly logger: Logger;
}

export function registerOperation(app: FastifyInstance, deps: HttpDeps, operation: Operation): void {
  const checks: Checks = {
    params: operation.params && createCheck(operation.params, "path"),
    query: operation.query && createCheck(operation.query, "query"),
    body: operation.body && createCheck(operation.body, "body"),
  };
  const arrivals = new WeakMap<FastifyRequest, { readonly caller: Caller; readonly arrivedAt: number }>();
  app.route({
    method: operation.method,
    url: operation.path.replaceAll(/\{(\w+)\}/g, ":$1"),
    config: { operation } as object,
    onRequest: async (request) => {
      const arrivedAt = deps.clock.now();
      const caller = await deps.authenticate(operation.auth, request.headers).catch(refuseWithoutDatabase);
      arrivals.set(request, { caller, arrivedAt });
    },
    handler: async (request, reply) => {
      const { caller, arrivedAt } = arrivals.get(request) ?? { caller: { kind: "anyone" }, arrivedAt: deps.clock.now() };
      const response = await operation.handle(deps.services, {
        caller,
        arrivedAt,
        headers: request.headers,
        ...checkedParts(operation, checks, request),
        signal: callerGone(reply),
      });
      deps.logger[operation.method === "GET" ? "debug" : "info"](
        {
          operation: operation.id,
          status: response.status,
          duration_ms: deps.clock.now() - arrivedAt,
          request_id: request.id,
          ...(caller.kind === "team" ? { team_id: caller.team.id } : {}),
          ...sandboxIdIn(request.params, response.body),
        },
        "request completed",
      );
      return await reply
        .code(response.status)
        .headers({ ...(operation.confidential ? NO_STORE : {}), ...response.headers })
        .send(response.body);
    },
  });
}

/** The operation has not begun. */
function refuseWithoutDatabase(error: unknown): never {
  throw databaseUnavailable(error, "nothing was begun, so try again") ?? error;
}

function checkedParts(operation: Operation, checks: Checks, request: FastifyRequest): { params: unknown; query: unknown; body: unknown } {
  checks.params?.(request.params);
  const query = operation.query ? readQuery(operation.query, request.query as Record<string, unknown>) : {};
  checks.query?.(query);
  if (request.body !== undefined || operation.bodyOptional !== true) {
    if (operation.body && request.body === undefined) throw validationError("the body is missing");
    checks.body?.(request.body);
  }
  return { params: request.params, query, body: operation.body ? request.body : undefined };
}

/** A signal that is aborted when the connection closes before the answer is sent. */
function callerGone(reply: FastifyReply): AbortSignal {
  const controller = new AbortController();
  reply.raw.once("close", () => {
    if (!reply.raw.writableFinished) controller.abort();
  });
  return controller.signal;
}

function sandboxIdIn(...places: readonly unknown[]): { sandbox_id?: unknown } {
  const found = places.map((place) => (place as { sandboxID?: unknown } | null | undefined)?.sandboxID).find((id) => id !== undefined);
  return found === undefined ? {} : { sandbox_id: found };
}
