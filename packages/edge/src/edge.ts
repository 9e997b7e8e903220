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
import { reset } from "./connections/reset.ts";
import { SandboxTraffic } from "./connections/sandbox-traffic.ts";
import { TrafficLimits } from "./connections/traffic-limits.ts";
import { Turns } from "./connections/turns.ts";
import { isUpgrade } from "./forwarding/forward-upgrade.ts";
import { KeptUpstreams } from "./forwarding/kept-upstream.ts";
import { STREAM_BUFFER_BYTES } from "./forwarding/stream-buffer.ts";
import { type StreamRequest, serveStream } from "./http2/serve-stream.ts";
import { Http2Sessions, type SessionsOptions } from "./http2/sessions.ts";
import { LinkLookup } from "./links/link-lookup.ts";
import * as metrics from "./metrics.ts";
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
  /**
   * How long a client's connection keeps its connection to a sandbox for its next request. A server that handles one connection at a time
   * is kept from other clients no longer than that. 0: each request has a connection of its own.
   */
  readonly upstreamIdleMs?: number;
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
  /** The same of all sandboxes of a group, such as a team's. Default: three quarters of `maxConnections`. */
  readonly maxGroupConnections?: number;
  /** Default: 0, no limit. */
  readonly maxGroupRequestsPerSecond?: number;
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
  const idleTimeoutMs = config.idleTimeoutMs ?? 610_000;
  const firstRequestTimeoutMs = config.firstRequestTimeoutMs ?? 20_000;
  const server = createServer({
    maxHeaderSize: maxHeaderBytes,
    highWaterMark: STREAM_BUFFER_BYTES,
    keepAliveTimeout: idleTimeoutMs,
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
  guardAccept(server, { maxConnections, firstRequestTimeoutMs }, deps.logger);
  const open = { plain: 0, secure: 0 };
  server.on("connection", (socket: Duplex) => {
    if (socket instanceof TLSSocket) return;
    open.plain++;
    socket.once("close", () => open.plain--);
  });
  const { api } = config;
  const http2Options = { maxHeaderBytes, idleTimeoutMs, firstRequestTimeoutMs, logger: deps.logger };
  const onStream = (request: StreamRequest) => {
    serveStream({ ...serving, api }, limits, request).catch((err: unknown) => failConnection(deps.logger, request.stream, err));
  };
  const tls =
    config.tls && acceptTls(server, { ...config.tls, open, maxConnections, logger: deps.logger, http2: { ...http2Options, onStream } });
  const close = endingConnections(server, reset);

  const limits = { maxHeaderBytes };
  const traffic = new SandboxTraffic();
  const endObserving = observeEdge({ open, traffic, maxConnections, streams: () => tls?.sessions.streams ?? 0 });
  const clientAddressOf = clientAddresses(config.trustedProxies ?? []);
  const serving: ServeDeps = {
    ...deps,
    traffic,
    signers: new SignerLookup(deps.findSigner, new AttemptLimit(config.now)),
    limits: trafficLimits(config, maxConnections),
    refusalLog: new RefusalLog(deps.logger, config.now),
    links: new LinkLookup({ findLink: deps.findLink, attempts: new AttemptLimit(config.now), now: config.now }),
    clientAddressOf,
    pathHost: config.pathHost === undefined ? undefined : hostNameOf(config.pathHost),
    isSecure: secureClients(config.trustedProxies ?? []),
    kept: new KeptUpstreams(config.upstreamIdleMs ?? 1_000),
  };
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
      return await listenOn(tls.listener.server, { host: config.host, port: config.tls.port });
    },
    close: async () => {
      endObserving();
      await Promise.all([tls?.listener.close(), close()]);
    },
    get address() {
      const address = server.address();
      if (address === null || typeof address === "string") throw new Error("the edge is not listening");
      return address;
    },
  };
}

interface ObservedEdge {
  readonly open: OpenConnections;
  readonly traffic: SandboxTraffic;
  readonly maxConnections: number;
  readonly streams: () => number;
}

/** Returns a function that ends it. */
function observeEdge({ open, traffic, maxConnections, streams }: ObservedEdge): () => void {
  const stops = [
    traffic.observe(),
    metrics.streams.observe(() => [{ value: streams() }]),
    metrics.connectionLimit.observe(() => [{ value: maxConnections }]),
    metrics.connections.observe(() => [
      { value: open.plain, labels: { listener: "http" } },
      { value: open.secure, labels: { listener: "https" } },
    ]),
  ];
  return () => {
    for (const stop of stops) stop();
  };
}

function trafficLimits(config: EdgeConfig, maxConnections: number): TrafficLimits {
  const share = (part: number) => Math.max(1, Math.floor(maxConnections * part));
  return new TrafficLimits({
    maxSandboxConnections: config.maxSandboxConnections ?? share(1 / 2),
    maxGroupConnections: config.maxGroupConnections ?? share(3 / 4),
    maxSandboxRequestsPerSecond: config.maxSandboxRequestsPerSecond ?? 0,
    maxGroupRequestsPerSecond: config.maxGroupRequestsPerSecond ?? 0,
    now: config.now,
  });
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

/** Connections of clients. */
interface OpenConnections {
  plain: number;
  secure: number;
}

interface Tls extends TlsConfig {
  readonly open: OpenConnections;
  readonly maxConnections: number;
  readonly logger: Logger;
  readonly http2: Omit<SessionsOptions, "hasRoom">;
}

/** Adds a TLS listener to the server. Connections of both listeners, and the streams of HTTP/2, together count towards the limit. */
function acceptTls(
  server: HttpServer,
  { open, maxConnections, logger, http2, ...config }: Tls,
): { readonly listener: TlsListener; readonly sessions: Http2Sessions } {
  const hasRoom = () => {
    const room = open.plain + open.secure + sessions.streams < maxConnections;
    // As for a plain connection that is refused: idle connections make room.
    if (!room) server.emit("drop");
    return room;
  };
  const sessions = new Http2Sessions({ ...http2, hasRoom });
  server.on("drop", () => sessions.closeIdle());
  const listener = new TlsListener({
    handshakeTimeoutMs: 10_000,
    maxHandshakes: 1024,
    ...config,
    highWaterMark: STREAM_BUFFER_BYTES,
    logger,
    hasRoom,
    onCount: (count) => {
      open.secure = count;
      server.maxConnections = Math.max(0, maxConnections - count);
    },
    onConnection: (socket) => {
      if (socket.alpnProtocol === "h2") sessions.accept(socket);
      else server.emit("connection", socket);
    },
  });
  return { listener, sessions };
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
