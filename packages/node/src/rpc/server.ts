// The listener for split roles: RPC for the control plane and, on CONNECT, byte tunnels into sandboxes for the edge. Both require the
// cluster secret.

import { createServer, type IncomingMessage } from "node:http";
import { type AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { ServiceImpl } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { endingConnections, isBearer, type Logger, PlatformError, type Secret } from "@skerry/base";
import { parsePort, parseSandboxId } from "@skerry/wire";
import { NodeService } from "@skerry/wire/node";
import type { Sandboxes } from "../sandboxes/sandboxes.ts";
import { dialSandbox } from "./dial.ts";

export interface NodeServerOptions {
  readonly service: ServiceImpl<typeof NodeService>;
  readonly sandboxes: Sandboxes;
  readonly secret: Secret;
  readonly logger: Logger;
}

export async function listenNodeServer(
  options: NodeServerOptions,
  host: string,
  port: number,
): Promise<{ port: number; close(): Promise<void> }> {
  const handle = connectNodeAdapter({ routes: (router) => router.service(NodeService, options.service), grpc: false, grpcWeb: false });
  const server = createServer({ requestTimeout: 0 }, (request, response) => {
    if (!isBearer(request.headers.authorization, options.secret)) {
      response.writeHead(401, { "Content-Type": "application/json" });
      response.end(JSON.stringify({ code: "unauthenticated", message: "the cluster secret is missing or wrong" }));
      return;
    }
    handle(request, response);
  });
  const close = endingConnections(server);
  server.on("connect", (request, client) => {
    void tunnel(options, request, client);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  return { port: (server.address() as AddressInfo).port, close };
}

/** Idle time before keep-alive probes. Only they tell an edge that is gone from one that finished sending; they take another minute. */
const PROBE_AFTER_MS = 30_000;

async function tunnel(options: NodeServerOptions, request: IncomingMessage, client: Duplex): Promise<void> {
  if (client instanceof Socket) client.setKeepAlive(true, PROBE_AFTER_MS);
  const gone = new AbortController();
  client.on("error", () => client.destroy());
  client.once("close", () => gone.abort());
  if (!isBearer(request.headers["proxy-authorization"], options.secret)) return refuse(client, "401 Unauthorized");
  const [id = "", portText = ""] = (request.url ?? "").split(":");
  const sandboxId = parseSandboxId(id);
  const port = parsePort(portText);
  if (!sandboxId || port === undefined) return refuse(client, "400 Bad Request");
  try {
    const upstream = await dialSandbox(options.sandboxes, { sandboxId, port }, gone.signal);
    client.write("HTTP/1.1 200 Connection Established\r\n\r\n");
    upstream.once("error", () => reset(client));
    // `pipe` passes half-closes on. Any other end of one side ends both.
    upstream.once("close", () => (upstream.readableEnded ? client.end() : reset(client)));
    // A reset, because the guest must not take a client that is gone for one that has sent everything.
    client.once("close", () => upstream.resetAndDestroy());
    upstream.pipe(client);
    client.pipe(upstream);
  } catch (error) {
    const code = error instanceof PlatformError ? error.code : "internal";
    refuse(client, code === "sandbox_gone" ? "404 Not Found" : "502 Bad Gateway");
  }
}

function refuse(client: Duplex, status: string): void {
  client.end(`HTTP/1.1 ${status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);
}

function reset(client: Duplex): void {
  if ("resetAndDestroy" in client && typeof client.resetAndDestroy === "function") client.resetAndDestroy();
  else client.destroy();
}
