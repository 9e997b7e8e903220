// Connection limits of the edge's listener.

import type { Server } from "node:http";
import type { Duplex } from "node:stream";
import type { Logger } from "@skerry/base";
import { refusedConnections } from "../metrics.ts";
import { reset } from "./reset.ts";

/** Minimum interval between two log lines about refused connections. */
const LOG_INTERVAL_MS = 10_000;

/** Minimum interval between two evictions of idle connections: each looks at all connections. */
const EVICT_INTERVAL_MS = 1_000;

export interface AcceptLimits {
  readonly maxConnections: number;
  readonly firstRequestTimeoutMs: number;
}

/**
 * Refuses new connections above the limit. When that happens, it closes connections that are idle between requests, because
 * their clients can reconnect. It resets connections that do not send a first request in time.
 */
export function guardAccept(server: Server, limits: AcceptLimits, logger: Logger): void {
  server.maxConnections = limits.maxConnections;
  let refused = 0;
  let loggedAt = Number.NEGATIVE_INFINITY;
  let evictedAt = Number.NEGATIVE_INFINITY;
  server.on("drop", () => {
    refused++;
    refusedConnections.inc();
    const now = performance.now();
    if (now - evictedAt >= EVICT_INTERVAL_MS) {
      evictedAt = now;
      server.closeIdleConnections();
    }
    if (now - loggedAt < LOG_INTERVAL_MS) return;
    loggedAt = now;
    logger.warn({ refused, max_connections: limits.maxConnections }, "too many connections: refusing new ones");
    refused = 0;
  });
  // An accept can fail for lack of descriptors or memory. The open connections are not affected.
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
