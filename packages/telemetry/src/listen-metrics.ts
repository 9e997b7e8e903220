// Serves the metrics of this process to Prometheus. The listener has no secret, so it is one of its own: by default it is on loopback, and
// neither the API, nor the edge, nor a node passes requests on to it.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { endingConnections } from "@skerry/base";
import { METRICS_CONTENT_TYPE, readMetrics } from "./metric-registry.ts";

/** A few Prometheus servers, each of which keeps its connection. */
const MAX_CONNECTIONS = 16;
const HEAD_TIMEOUT_MS = 10_000;
const IDLE_TIMEOUT_MS = 120_000;

export interface MetricsListener {
  readonly port: number;
  close(): Promise<void>;
}

/** Port 0 selects a free port. Rejects with the error of the system call. */
export async function listenMetrics({ host, port }: { readonly host: string; readonly port: number }): Promise<MetricsListener> {
  const server = createServer(
    { headersTimeout: HEAD_TIMEOUT_MS, requestTimeout: HEAD_TIMEOUT_MS, keepAliveTimeout: IDLE_TIMEOUT_MS, maxHeaderSize: 8 * 1024 },
    (request, response) => void answer(request, response),
  );
  server.maxConnections = MAX_CONNECTIONS;
  const close = endingConnections(server);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  return { port: (server.address() as AddressInfo).port, close };
}

async function answer({ method, url }: IncomingMessage, response: ServerResponse): Promise<void> {
  if (url?.split("?", 1)[0] !== "/metrics") return refuse(response, 404, "Not found. The metrics are at /metrics.\n");
  if (method !== "GET" && method !== "HEAD") return refuse(response, 405, "Method not allowed\n");
  try {
    const text = await readMetrics();
    response.writeHead(200, { "Content-Type": METRICS_CONTENT_TYPE, "Content-Length": Buffer.byteLength(text) });
    response.end(method === "HEAD" ? undefined : text);
  } catch {
    refuse(response, 500, "The metrics can't be read\n");
  }
}

function refuse(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { "Content-Type": "text/plain; charset=utf-8", Connection: "close" });
  response.end(text);
}
