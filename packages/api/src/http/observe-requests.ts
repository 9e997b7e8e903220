import type { FastifyInstance, FastifyRequest } from "fastify";
import { activeRequests, requestDuration, requests } from "../metrics.ts";
import type { Operation } from "./operation.ts";

/** As in the logs of many servers: the caller went away. */
const CALLER_GONE = 499;

/** Counts and times every request. Must be registered before all other hooks, so that refused requests count. */
export function observeRequests(app: FastifyInstance): void {
  app.addHook("onRequest", (request, { raw }, done) => {
    const operation = operationOf(request);
    const startedAt = performance.now();
    activeRequests.inc();
    raw.once("close", () => {
      activeRequests.dec();
      requests.inc({ operation, code: raw.writableFinished ? raw.statusCode : CALLER_GONE });
      const isStream = String(raw.getHeader("content-type") ?? "").startsWith("text/event-stream");
      if (!isStream) requestDuration.observe({ operation }, (performance.now() - startedAt) / 1000);
    });
    done();
  });
}

/** From a fixed list: paths that callers make up have no operation. */
function operationOf({ method, routeOptions }: FastifyRequest): string {
  const { operation, isUnhurried } = routeOptions.config as { operation?: Operation; isUnhurried?: boolean };
  if (operation) return operation.id;
  if (isUnhurried) return "upload";
  return method === "OPTIONS" ? "preflight" : "none";
}
