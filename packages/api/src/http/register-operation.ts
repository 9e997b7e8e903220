// Makes a route of an operation. The order of the checks is part of the contract: credentials, path and query, body, and then the
// operation itself.

import { type Clock, type Logger, withRequest } from "@skerry/base";
import { noteInTrace, type SpanAbout, type SpanFacts, traced } from "@skerry/telemetry";
import { parseSandboxId } from "@skerry/wire";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { AuditTrail } from "../audit/audit-trail.ts";
import { AuditedRequest, actorOf } from "../audit/audited-request.ts";
import { databaseUnavailable, publicError, validationError } from "../errors.ts";
import type { Authenticate } from "../keys/authenticate.ts";
import type { Caller } from "../keys/caller.ts";
import { keepToMetadata } from "./input/caller-metadata.ts";
import { type Check, createCheck, readQuery } from "./input/check.ts";
import type { Operation } from "./operation.ts";
import { NO_STORE } from "./output/encode-error.ts";
import type { RequestRates } from "./request-rates.ts";
import type { ApiServices } from "./services.ts";

interface Checks {
  readonly params: Check | undefined;
  readonly query: Check | undefined;
  readonly body: Check | undefined;
}

export interface HttpDeps {
  readonly services: ApiServices;
  readonly authenticate: Authenticate;
  readonly rates: RequestRates;
  readonly audit: { readonly trail: AuditTrail; readonly run: string };
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Of all operations, for the handler of errors. */
const auditedRequests = new WeakMap<FastifyRequest, AuditedRequest>();

/** Undefined for a request that names no operation. */
export function auditedRequestOf(request: FastifyRequest): AuditedRequest | undefined {
  return auditedRequests.get(request);
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
    onRequest: async (request, reply) => {
      const arrivedAt = deps.clock.now();
      const audited = beginAudit(deps, operation, request);
      const found = (caller: Caller) => audited.noteCaller(caller);
      const caller = await deps.authenticate(operation, request.headers, found).catch(refuseWithoutDatabase);
      const rate = await deps.rates.take(caller, operation.id).catch(refuseWithoutDatabase);
      if (rate) void reply.headers(rate.headers);
      if (rate?.isAllowed === false) throw publicError("rate_limited", "Rate limit exceeded");
      arrivals.set(request, { caller, arrivedAt });
    },
    handler: async (request, reply) => {
      const { caller, arrivedAt } = arrivals.get(request) ?? { caller: { kind: "anyone" }, arrivedAt: deps.clock.now() };
      const asked = {
        caller,
        arrivedAt,
        headers: request.headers,
        ...checkedParts(operation, checks, request),
        signal: callerGone(reply),
        recheck: () => deps.authenticate(operation, request.headers),
      };
      await keepToMetadata(deps.services, { caller, operation, params: asked.params });
      const audited = auditedRequestOf(request);
      const cause = { requestId: request.id, actor: actorOf(caller), ...(audited && { audit: audited }) };
      const response = await traced(spanOf(operation, request), () =>
        withRequest(cause, async () => {
          const answer = await operation.handle(deps.services, asked);
          noteInTrace({ "http.response.status_code": answer.status, ...sandboxOf(request.params, answer.body) });
          return answer;
        }),
      );
      if (audited) deps.audit.trail.end(audited, response);
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

function beginAudit({ audit }: HttpDeps, operation: Operation, request: FastifyRequest): AuditedRequest {
  const { id: requestId, headers, params } = request;
  const facts = { requestId, run: audit.run, operation, headers, params, addressOf: () => request.ip, arrivedAt: performance.now() };
  const audited = new AuditedRequest(facts);
  auditedRequests.set(request, audited);
  return audited;
}

/** No part of a span comes from the query, the body or the headers. */
function spanOf({ id, method, path }: Operation, request: FastifyRequest): SpanAbout {
  return { name: id, kind: "server", facts: { "http.request.method": method, "http.route": path, "skerry.request_id": request.id } };
}

function sandboxOf(...places: readonly unknown[]): SpanFacts {
  const { sandbox_id: id } = sandboxIdIn(...places);
  return typeof id === "string" && parseSandboxId(id) !== undefined ? { "skerry.sandbox_id": id } : {};
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
