// Answers for a host of a sandbox's header rules: completes TLS with the sandbox as that host, adds the headers to each request, and passes it
// on to the real host over TLS that is verified. The sandbox sees its own requests and the answers, and never what was added.
//
// Each connection of the sandbox has at most one to the host, and both end together. So a client sees a host that closes an idle connection as
// it would without us, and no request is ever sent twice.
//
// Failure policy: a request that cannot get its headers is not sent.

import { Agent, createServer, type IncomingMessage, type RequestOptions, type ServerResponse, request as sendRequest } from "node:http";
import { type Duplex, pipeline } from "node:stream";
import { createSecureContext, rootCertificates, type SecureContext, TLSSocket, connect as tlsConnect } from "node:tls";
import type { Leaf } from "./authority.ts";
import { requestFields, responseFields } from "./http-fields.ts";
import { passUpgrade } from "./pass-upgrade.ts";
import { requestProblem } from "./request-problem.ts";

/** What is to be added to a request now: the rules may change while a connection is open. */
export type AddedHeaders =
  | { readonly kind: "headers"; readonly headers: Readonly<Record<string, string>> }
  /** The rules for the host cannot be met. */
  | { readonly kind: "unavailable"; readonly why: string }
  /** There is no rule for the host any more. */
  | { readonly kind: "none" };

export interface Interception {
  /** The connection of the sandbox. What was read of it must have been put back. */
  readonly client: Duplex;
  /** The name that the sandbox asks for in its handshake, in lower case. */
  readonly host: string;
  readonly leaf: Leaf;
  added(): AddedHeaders;
  /** Opens a connection to the host, if the sandbox may reach it. */
  dial(): Promise<Duplex>;
  readonly trust: UpstreamTrust;
  /** A request that was refused, and why. Contains no value of a header. */
  onRefused(why: string): void;
}

/** The authorities that may vouch for a host. */
export interface UpstreamTrust {
  readonly context: SecureContext;
}

const MAX_HEAD_BYTES = 64 * 1024;
const HANDSHAKE_TIMEOUT_MS = 20_000;
/** Longer than clients keep idle connections. */
const IDLE_MS = 610_000;

/** `certificates`: PEM of the site's authorities, which are trusted besides the public ones. */
export function upstreamTrust(certificates: string): UpstreamTrust {
  const ca = certificates === "" ? [...rootCertificates] : [...rootCertificates, certificates];
  return { context: createSecureContext({ ca, minVersion: "TLSv1.2" }) };
}

interface Connection {
  readonly about: Interception;
  readonly upstream: Upstream;
}

const connections = new WeakMap<Duplex, Connection>();

const server = createServer({ maxHeaderSize: MAX_HEAD_BYTES, keepAliveTimeout: IDLE_MS, requireHostHeader: true }, (request, response) => {
  const connection = connections.get(request.socket);
  if (connection) forward(connection, request, response);
  else request.socket.destroy();
});
server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
  const connection = connections.get(request.socket);
  const options = connection && optionsFor(connection, request);
  if (!connection || !options || "refused" in options) return void socket.destroy();
  passUpgrade({ request, socket, head, options, agent: connection.upstream });
});
server.on("clientError", (_error, socket) => socket.destroy());

/** Resolves when the connection of the sandbox has ended. Never throws. */
export function intercept(about: Interception): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { client, leaf } = about;
  const tls = new TLSSocket(client as never, {
    isServer: true,
    secureContext: createSecureContext({ key: leaf.key, cert: leaf.certificate, minVersion: "TLSv1.2" }),
    ALPNProtocols: ["http/1.1"],
  });
  const upstream = new Upstream(about, tls);
  connections.set(tls, { about, upstream });
  const late = setTimeout(() => tls.destroy(), HANDSHAKE_TIMEOUT_MS);
  tls.on("error", () => tls.destroy());
  client.on("error", () => tls.destroy());
  client.on("close", () => tls.destroy());
  tls.on("close", () => {
    clearTimeout(late);
    upstream.destroy();
    client.destroy();
    resolve();
  });
  tls.once("secure", () => {
    clearTimeout(late);
    tls.setTimeout(IDLE_MS, () => tls.destroy());
    server.emit("connection", tls);
  });
  return promise;
}

/** The one connection to the host. */
class Upstream extends Agent {
  readonly #about: Interception;
  readonly #client: TLSSocket;

  constructor(about: Interception, client: TLSSocket) {
    super({ keepAlive: true, maxSockets: 1, timeout: IDLE_MS });
    this.#about = about;
    this.#client = client;
  }

  override createConnection(_options: object, onOpen?: (error: Error | null, stream: Duplex) => void): undefined {
    this.#open().then(
      (socket) => {
        // Both connections end together; a response that is under way is finished first.
        socket.once("close", () => this.#client.destroySoon());
        onOpen?.(null, socket);
      },
      (error: Error) => onOpen?.(error, undefined as never),
    );
  }

  async #open(): Promise<TLSSocket> {
    const { host, trust } = this.#about;
    const socket = await this.#about.dial();
    const { promise, resolve, reject } = Promise.withResolvers<TLSSocket>();
    const tls = tlsConnect({
      socket,
      servername: host,
      secureContext: trust.context,
      rejectUnauthorized: true,
      ALPNProtocols: ["http/1.1"],
    });
    const late = setTimeout(() => tls.destroy(new Error("the host did not complete TLS")), HANDSHAKE_TIMEOUT_MS);
    socket.once("close", () => tls.destroy());
    tls.once("secureConnect", () => resolve(tls));
    tls.once("error", reject);
    tls.once("close", () => {
      clearTimeout(late);
      socket.destroy();
      reject(new Error("the host closed the connection"));
    });
    await promise.finally(() => clearTimeout(late));
    return tls;
  }
}

type Prepared = RequestOptions | { readonly refused: number; readonly why: string };

/** The request for the host, or why there must be none. */
function optionsFor({ about, upstream }: Connection, request: IncomingMessage): Prepared {
  const method = request.method ?? "";
  const problem = requestProblem(request, about.host);
  if (problem) return { refused: problem.status, why: problem.why };
  const added = about.added();
  if (added.kind === "none") return { refused: 421, why: "the rules for this host have changed" };
  if (added.kind === "unavailable") return { refused: 502, why: added.why };
  const fields = requestFields({ method, rawHeaders: request.rawHeaders }, added.headers);
  return { agent: upstream, method, path: request.url, headers: [...fields.flat(), "Connection", "keep-alive"], setHost: false };
}

function forward(connection: Connection, request: IncomingMessage, response: ServerResponse): void {
  const options = optionsFor(connection, request);
  response.sendDate = false;
  if ("refused" in options) {
    connection.about.onRefused(options.why);
    refuse(response, options.refused, options.why);
    return;
  }
  const outgoing = sendRequest(options);
  outgoing.on("response", (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.statusMessage, responseFields(answer.rawHeaders).flat());
    pipeline(answer, response, (error) => {
      if (error) request.socket.destroy();
    });
  });
  outgoing.on("error", (error: NodeJS.ErrnoException) => {
    if (response.headersSent) return void request.socket.destroy();
    const why = `the host could not be reached: ${error.code ?? "closed"}`;
    connection.about.onRefused(why);
    // On a connection that has served before, the client would not learn whether the host has seen the request.
    if (outgoing.reusedSocket) request.socket.destroy();
    else refuse(response, 502, why);
  });
  response.on("close", () => {
    if (!response.writableFinished) outgoing.destroy();
  });
  pipeline(request, outgoing, () => {});
}

function refuse(response: ServerResponse, status: number, why: string): void {
  response.writeHead(status, { "Content-Type": "text/plain; charset=utf-8", Connection: "close" });
  response.end(`${why}\n`);
}
