import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { endingConnections } from "@skerry/base";
import { connectionLimit } from "./connections/connection-limit.ts";
import { failConnection } from "./connections/fail-connection.ts";
import { guard } from "./connections/guard.ts";
import { guardAccept } from "./connections/guard-accept.ts";
import { openFilesLimit } from "./connections/open-files.ts";
import { reset } from "./connections/reset.ts";
import { Turns } from "./connections/turns.ts";
import { isUpgrade } from "./forwarding/forward-upgrade.ts";
import { STREAM_BUFFER_BYTES } from "./forwarding/stream-buffer.ts";
import type { FindSigner } from "./ports.ts";
import type { UpstreamDeps } from "./routing/open-upstream.ts";
import { refuseConnect, type ServeDeps, serveRequest, serveUpgrade } from "./serve.ts";
import { AttemptLimit } from "./signatures/attempt-limit.ts";
import { clientAddresses } from "./signatures/client-address.ts";
import { SignerLookup } from "./signatures/signer-lookup.ts";

export interface EdgeConfig {
  readonly host: string;
  /** 0 takes a free port. */
  readonly port: number;
  /** Longest request line and header fields together, in both directions. Over it: 431, or 502 for an answer. */
  readonly maxHeaderBytes?: number;
  /** How long a client's connection may stay open without a request. */
  readonly idleTimeoutMs?: number;
  /** How long it may stay open before its first request. */
  readonly firstRequestTimeoutMs?: number;
  /** Client connections at one time. The default leaves room in the process's limit of open files. */
  readonly maxConnections?: number;
  /** Addresses and networks of the proxies in front of the edge. The edge takes a client's address from their `X-Forwarded-For`. */
  readonly trustedProxies?: readonly string[];
  /** Milliseconds of a clock that never goes back. Limits of attempts are counted by it. */
  readonly now?: () => number;
}

export interface EdgeDeps extends UpstreamDeps {
  readonly findSigner: FindSigner;
}

export interface Edge {
  /** Resolves to the address that clients reach it at. */
  listen(): Promise<AddressInfo>;
  /** Takes no more connections and resets those that are open. */
  close(): Promise<void>;
  /** Throws when it does not listen. */
  readonly address: AddressInfo;
}

/** The front door for sandbox traffic: finds the sandbox a request is for and moves bytes, with no limit on size or time. */
export function createEdge(config: EdgeConfig, deps: EdgeDeps): Edge {
  const maxHeaderBytes = config.maxHeaderBytes ?? 64 * 1024;
  const server = createServer({
    maxHeaderSize: maxHeaderBytes,
    highWaterMark: STREAM_BUFFER_BYTES,
    keepAliveTimeout: config.idleTimeoutMs ?? 610_000,
    // A slow head is an attack; a slow body is a user's stream.
    headersTimeout: 60_000,
    requestTimeout: 0,
    keepAlive: true,
    // A peer that went away after it had said everything shows in no other way.
    keepAliveInitialDelay: 60_000,
    noDelay: true,
    insecureHTTPParser: false,
    shouldUpgradeCallback: isUpgrade,
  });
  server.maxHeadersCount = 0;
  const maxConnections = config.maxConnections ?? connectionLimit(openFilesLimit());
  guardAccept(server, { maxConnections, firstRequestTimeoutMs: config.firstRequestTimeoutMs ?? 20_000 }, deps.logger);
  const close = endingConnections(server);

  const limits = { maxHeaderBytes };
  const clientAddressOf = clientAddresses(config.trustedProxies ?? []);
  const serving: ServeDeps = { ...deps, signers: new SignerLookup(deps.findSigner, new AttemptLimit(config.now)), clientAddressOf };
  const turns = new Turns();
  const onRequest = (req: IncomingMessage, res: ServerResponse) => {
    const client = req.socket;
    const start = () => {
      serveRequest(serving, limits, { req, res }).catch((err: unknown) => failConnection(deps.logger, client, err));
    };
    if (!turns.take(client, res, start)) reset(client);
  };
  server.on("request", onRequest);
  // The sandbox's own server decides whether the client may go on.
  server.on("checkContinue", onRequest);
  server.on("checkExpectation", onRequest);
  server.on("upgrade", (req: IncomingMessage, client: Duplex, clientHead: Buffer) => {
    if (hasLeft(client, turns)) return;
    serveUpgrade(serving, limits, { req, client, clientHead }).catch((err: unknown) => failConnection(deps.logger, client, err));
  });
  server.on("connect", (req: IncomingMessage, client: Duplex) => {
    if (hasLeft(client, turns)) return;
    guard(refuseConnect, (err) => failConnection(deps.logger, client, err))(req, client);
  });

  return {
    listen: () =>
      new Promise((resolve, reject) => {
        server.once("error", reject);
        server.listen({ host: config.host, port: config.port, backlog: 4096 }, () => {
          server.off("error", reject);
          resolve(server.address() as AddressInfo);
        });
      }),
    close,
    get address() {
      const address = server.address();
      if (address === null || typeof address === "string") throw new Error("the edge does not listen");
      return address;
    },
  };
}

/**
 * An upgrade or a CONNECT takes the connection over. While a response to an earlier request has it, two would write to it;
 * no client that waits for its answers gets here, so the connection is reset.
 */
function hasLeft(client: Duplex, turns: Turns): boolean {
  client.on("error", () => {});
  if (turns.isBusy(client)) reset(client);
  return client.destroyed;
}
