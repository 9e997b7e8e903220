// What a server does when connections come faster than they can be kept.

import type { Server } from "node:http";
import type { Duplex } from "node:stream";
import type { Logger } from "@skerry/base";
import { reset } from "./reset.ts";

const LOG_EVERY_MS = 10_000;
const EVICT_EVERY_MS = 1_000;

export interface AcceptLimits {
  readonly maxConnections: number;
  readonly firstRequestTimeoutMs: number;
}

/**
 * Refuses connections over the limit, and then lets go of those that idle between requests: a live client opens another.
 * A connection that has not sent its first request in time is reset.
 */
export function guardAccept(server: Server, limits: AcceptLimits, logger: Logger): void {
  server.maxConnections = limits.maxConnections;
  let refused = 0;
  let loggedAt = Number.NEGATIVE_INFINITY;
  let evictedAt = Number.NEGATIVE_INFINITY;
  server.on("drop", () => {
    refused++;
    const now = performance.now();
    if (now - evictedAt >= EVICT_EVERY_MS) {
      evictedAt = now;
      server.closeIdleConnections();
    }
    if (now - loggedAt < LOG_EVERY_MS) return;
    loggedAt = now;
    logger.warn({ refused, max_connections: limits.maxConnections }, "too many connections, new ones are refused");
    refused = 0;
  });
  // An accept that fails, for want of descriptors or memory, is not the end of the others.
  server.on("error", (err) => logger.error({ err }, "the edge's listener failed"));

  const waiting = new WeakMap<Duplex, NodeJS.Timeout>();
  server.on("connection", (client: Duplex) => {
    const timer = setTimeout(() => reset(client), limits.firstRequestTimeoutMs);
    waiting.set(client, timer);
    client.once("close", () => clearTimeout(timer));
  });
  for (const event of ["request", "checkContinue", "checkExpectation", "upgrade", "connect"]) {
    server.on(event, ({ socket }: { socket: Duplex }) => clearTimeout(waiting.get(socket)));
  }
}
