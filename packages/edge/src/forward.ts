// One HTTP exchange with the server inside the sandbox: heads are rewritten, bodies are piped, ends are passed on as they came.
//
// Invariants: an answer that broke off resets the client's connection; a client that went away closes the upstream at once;
// the upstream connection carries this one request only. A FIN from the client counts as going away, as nginx and Go have it.

import { type ClientRequest, request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { type Framing, requestHeaders, responseHeaders, trailerFields } from "./headers.ts";
import { reset } from "./reset.ts";
import { framingOf } from "./routing.ts";

export interface Exchange {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly upstream: Duplex;
  readonly path: string;
  readonly framing: Framing;
  readonly maxHeaderBytes: number;
  /** The upstream broke before it answered; nothing has been sent to the client. */
  readonly onBroken: (error: Error) => void;
}

/** Methods for which "no body" must be said as a length, because a body would be usual (RFC 9110, 8.6). */
const BODY_IS_USUAL: ReadonlySet<string> = new Set(["POST", "PUT", "PATCH"]);

export function forward(exchange: Exchange): void {
  const { req, res } = exchange;
  const outgoing = sendHead(exchange);
  let answer: IncomingMessage | undefined;

  res.once("close", () => {
    if (!res.writableFinished) outgoing.destroy();
  });
  outgoing.once("response", (incoming) => {
    answer = incoming;
    answerClient(exchange, { outgoing, incoming });
  });
  outgoing.once("continue", () => {
    if (req.headers.expect !== undefined && !res.headersSent) res.writeContinue();
  });
  const broken = (error: Error) => {
    // After a whole answer the sandbox may break the connection as it likes.
    if (answer?.complete || res.destroyed) return;
    if (res.headersSent) reset(req.socket);
    else exchange.onBroken(error);
  };
  outgoing.on("error", broken);
  // Node drops an answer that changes the protocol unasked without an error.
  outgoing.once("close", () => {
    if (!answer) broken(new Error("closed without an answer"));
  });
  sendBody(exchange, outgoing);
}

function sendHead({ req, upstream, path, framing, maxHeaderBytes }: Exchange): ClientRequest {
  const headers = requestHeaders(req.rawHeaders, { framing, upgrade: false });
  if (framing === "none" && BODY_IS_USUAL.has(req.method ?? "")) headers.push("Content-Length", "0");
  const outgoing = httpRequest({
    createConnection: () => upstream,
    method: req.method,
    path,
    headers,
    setHost: false,
    maxHeaderSize: maxHeaderBytes,
  });
  outgoing.maxHeadersCount = 0;
  return outgoing;
}

function sendBody({ req, framing }: Exchange, outgoing: ClientRequest): void {
  if (framing === "none") {
    outgoing.end();
    return;
  }
  // The server may answer, or say "100 Continue", before it has seen any of the body.
  outgoing.flushHeaders();
  req.pipe(outgoing, { end: false });
  req.once("end", () => {
    if (framing === "chunked" && req.rawTrailers.length > 0) outgoing.addTrailers(trailerFields(req.rawTrailers));
    outgoing.end();
  });
}

function answerClient({ req, res, onBroken }: Exchange, exchange: { outgoing: ClientRequest; incoming: IncomingMessage }): void {
  const { outgoing, incoming } = exchange;
  const framing = framingOf(incoming.rawHeaders);
  if (framing === undefined) {
    // Its coding would be lost on the way.
    incoming.on("error", () => {});
    outgoing.destroy();
    onBroken(new Error("unsupported transfer coding in an answer"));
    return;
  }
  incoming.once("error", () => reset(req.socket));
  // HTTP/1.0 knows no chunks: the end of the connection is the end of the body.
  const framingOut = framing === "chunked" && req.httpVersion === "1.0" ? "close" : framing;
  const headers = responseHeaders(incoming.rawHeaders, framingOut);
  // Still waiting for our "100 Continue": its next bytes may be another request (see send-refusal.ts).
  if (req.headers.expect !== undefined && !req.complete) headers.push("Connection", "close");
  res.sendDate = false;
  res.writeHead(incoming.statusCode ?? 502, incoming.statusMessage ?? "", headers);
  incoming.pipe(res, { end: false });
  incoming.once("end", () => {
    if (!incoming.complete) return;
    if (!req.complete) req.unpipe(outgoing);
    if (framingOut === "chunked" && incoming.rawTrailers.length > 0) res.addTrailers(trailerFields(incoming.rawTrailers));
    res.end();
  });
  // One packet when the body came along with the head; no waiting for it when it did not.
  setImmediate(() => {
    if (!incoming.readableDidRead && !res.writableEnded && !res.destroyed) res.flushHeaders();
  });
}
