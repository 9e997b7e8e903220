import { createServer, type Server as HttpServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Server } from "node:net";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import { endingConnections, type Logger } from "@skerry/base";
import { hostNameOf } from "@skerry/wire";
import { RefusalLog } from "./answers/refusal-log.ts";
import { connectionLimit } from "./connections/connection-limit.ts";
import { failConnection } from "./connections/fail-connection.ts";
import { guard } from "./connections/guard.ts";
import { guardAccept } from "./connections/guard-accept.ts";
import { openFilesLimit } from "./connections/open-files.ts";
import { RequestRate } from "./connections/request-rate.ts";
import { reset } from "./connections/reset.ts";
import { SandboxConnections } from "./connections/sandbox-connections.ts";
import { Turns } from "./connections/turns.ts";
import { isUpgrade } from "./forwarding/forward-upgrade.ts";
import { STREAM_BUFFER_BYTES } from "./forwarding/stream-buffer.ts";
import { LinkLookup } from "./links/link-lookup.ts";
import { type ApiRoute, isForApi, serveApi } from "./platform-api/serve-api.ts";
import type { FindLink, FindSigner } from "./ports.ts";
import type { UpstreamDeps } from "./routing/open-upstream.ts";
import { refuseConnect, type ServeDeps, serveRequest, serveUpgrade } from "./serve.ts";
import { AttemptLimit } from "./signatures/attempt-limit.ts";
import { clientAddresses, secureClients } from "./signatures/client-address.ts";
import { SignerLookup } from "./signatures/signer-lookup.ts";
import type { CertificateFiles } from "./tls/certificate-files.ts";
import { type HandshakeLimits, TlsListener } from "./tls/tls-listener.ts";

export interface EdgeConfig {
  readonly host: string;
  /** 0 selects a free port. */
  readonly port: number;
  /** Maximum size of the first line and the header fields together. A larger request gets 431; a larger response becomes a 502. */
  readonly maxHeaderBytes?: number;
  /** Idle timeout of client connections between requests. */
  readonly idleTimeoutMs?: number;
  /** Timeout for the first request on a client connection. */
  readonly firstRequestTimeoutMs?: number;
  /** Timeout for the head of each request. A slower one gets 408. */
  readonly headTimeoutMs?: number;
  /** Maximum number of simultaneous client connections. The default depends on the process's limit on open files. */
  readonly maxConnections?: number;
  /** Maximum number of simultaneous requests and upgraded connections of one sandbox. Default: half of `maxConnections`. */
  readonly maxSandboxConnections?: number;
  /** Requests that a sandbox may have per second on average. Default: 0, no limit. */
  readonly maxSandboxRequestsPerSecond?: number;
  /** Addresses and networks of the proxies in front of the edge. The edge trusts only their `X-Forwarded-For`. */
  readonly trustedProxies?: readonly string[];
  /** A second listener, for the same requests over TLS. */
  readonly tls?: TlsConfig;
  /** Where the TLS listener sends requests for `api.{domain}`. Without it, they are refused like those for any other unknown name. */
  readonly api?: ApiRoute;
  /** A host name on which requests name their sandbox in the path. A port in it is ignored. Without it, no host has this form. */
  readonly pathHost?: string;
  /** A monotonic clock in milliseconds, for the limits on failed lookups and on requests, and for the log. */
  readonly now?: () => number;
}

export interface TlsConfig extends Partial<HandshakeLimits> {
  /** 0 selects a free port. */
  readonly port: number;
  /** The caller disposes of it after the edge was closed. */
  readonly certificate: CertificateFiles;
}

export interface EdgeDeps extends UpstreamDeps {
  readonly findSigner: FindSigner;
  readonly findLink: FindLink;
}

export interface Edge {
  /** Starts to listen. Resolves to the address that clients connect to. */
  listen(): Promise<AddressInfo>;
  /** Starts to listen for TLS. Only with `tls`. */
  listenTls(): Promise<AddressInfo>;
  /** Stops accepting connections and resets the open ones. */
  close(): Promise<void>;
  /** Throws if the edge is not listening. */
  readonly address: AddressInfo;
}

/** Creates the reverse proxy for sandbox traffic. It routes each request to its sandbox and streams bytes without a limit on size or time. */
export function createEdge(config: EdgeConfig, deps: EdgeDeps): Edge {
  const maxHeaderBytes = config.maxHeaderBytes ?? 64 * 1024;
  const headTimeoutMs = config.headTimeoutMs ?? 60_000;
  const server = createServer({
    maxHeaderSize: maxHeaderBytes,
    highWaterMark: STREAM_BUFFER_BYTES,
    keepAliveTimeout: config.idleTimeoutMs ?? 610_000,
    // Only a slow head is a sign of an attack. A slow body may be a stream.
    headersTimeout: headTimeoutMs,
    connectionsCheckingInterval: Math.min(30_000, headTimeoutMs),
    requestTimeout: 0,
    keepAlive: true,
    // Without TCP keep-alive, a peer that vanishes after its last packet is never detected.
    keepAliveInitialDelay: 60_000,
    noDelay: true,
    insecureHTTPParser: false,
    shouldUpgradeCallback: isUpgrade,
  });
  server.maxHeadersCount = 0;
  const maxConnections = config.maxConnections ?? connectionLimit(openFilesLimit());
  guardAccept(server, { maxConnections, firstRequestTimeoutMs: config.firstRequestTimeoutMs ?? 20_000 }, deps.logger);
  const tls = config.tls && acceptTls(server, { ...config.tls, maxConnections, logger: deps.logger });
  const close = endingConnections(server, reset);

  const limits = { maxHeaderBytes };
  const clientAddressOf = clientAddresses(config.trustedProxies ?? []);
  const serving: ServeDeps = {
    ...deps,
    signers: new SignerLookup(deps.findSigner, new AttemptLimit(config.now)),
    connections: new SandboxConnections(config.maxSandboxConnections ?? Math.max(1, Math.floor(maxConnections / 2))),
    rate: new RequestRate(config.maxSandboxRequestsPerSecond ?? 0, config.now),
    refusalLog: new RefusalLog(deps.logger, config.now),
    links: new LinkLookup({ findLink: deps.findLink, attempts: new AttemptLimit(config.now), now: config.now }),
    clientAddressOf,
    pathHost: config.pathHost === undefined ? undefined : hostNameOf(config.pathHost),
    isSecure: secureClients(config.trustedProxies ?? []),
  };
  const { api } = config;
  const turns = new Turns();
  const onRequest = (req: IncomingMessage, res: ServerResponse) => {
    const client = req.socket;
    const start = () => {
      const served =
        api && isForApi(api, req) ? serveApi({ ...serving, api }, limits, { req, res }) : serveRequest(serving, limits, { req, res });
      served.catch((err: unknown) => failConnection(deps.logger, client, err));
    };
    if (!turns.take(client, res, start)) reset(client);
  };
  server.on("request", onRequest);
  // The server in the sandbox decides whether the client may send its body.
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
    listen: () => listenOn(server, config),
    listenTls: async () => {
      if (!tls || !config.tls) throw new Error("the edge has no certificate");
      return await listenOn(tls.server, { host: config.host, port: config.tls.port });
    },
    close: async () => {
      await Promise.all([tls?.close(), close()]);
    },
    get address() {
      const address = server.address();
      if (address === null || typeof address === "string") throw new Error("the edge is not listening");
      return address;
    },
  };
}

function listenOn(server: Server, { host, port }: { host: string; port: number }): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host, port, backlog: 4096 }, () => {
      server.off("error", reject);
      resolve(server.address() as AddressInfo);
    });
  });
}

/** Adds a TLS listener to the server. Connections of both listeners together count towards the limit. */
function acceptTls(
  server: HttpServer,
  { maxConnections, logger, ...config }: TlsConfig & { maxConnections: number; logger: Logger },
): TlsListener {
  let plain = 0;
  server.on("connection", (socket: Duplex) => {
    if (socket instanceof TLSSocket) return;
    plain++;
    socket.once("close", () => plain--);
  });
  return new TlsListener({
    handshakeTimeoutMs: 10_000,
    maxHandshakes: 1024,
    ...config,
    highWaterMark: STREAM_BUFFER_BYTES,
    logger,
    hasRoom: (open) => {
      const room = plain + open < maxConnections;
      // As for a plain connection that is refused: idle connections make room.
      if (!room) server.emit("drop");
      return room;
    },
    onCount: (open) => {
      server.maxConnections = Math.max(0, maxConnections - open);
    },
    onConnection: (socket) => server.emit("connection", socket),
  });
}

/**
 * Returns whether the connection is closed, after resetting it if an earlier request is still unanswered. An upgrade or a CONNECT
 * takes over the connection, so it must not share the connection with a response. No client that waits for its responses does this.
 */
function hasLeft(client: Duplex, turns: Turns): boolean {
  client.on("error", () => {});
  if (turns.isBusy(client)) reset(client);
  return client.destroyed;
}
