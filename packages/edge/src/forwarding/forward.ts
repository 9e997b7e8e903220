// One HTTP exchange with the server in the sandbox: the edge rewrites both heads and streams the bodies.
//
// Invariants:
// - If the response breaks off, the edge resets the client's connection.
// - If the client disconnects, the edge closes the upstream connection at once. A FIN from the client counts as a disconnect, as
//   in nginx and Go.
// - An upstream connection carries one request only, unless the exchange has `keep` (see kept-upstream.ts).

import type { ClientRequest, IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { asError } from "@skerry/base";
import { guard } from "../connections/guard.ts";
import { reset } from "../connections/reset.ts";
import { framingOf } from "../routing/route-request.ts";
import { type Framing, type RawHeaders, responseHeaders, trailerFields } from "./headers.ts";
import { responseForPath } from "./path-form.ts";
import { isLarge, pourAnswer } from "./pour-answer.ts";
import { retire } from "./retire.ts";
import { sendHead } from "./send-head.ts";
import { isBodiless, type StatusLine, statusLine } from "./status-line.ts";

/** How a request of either protocol is forwarded. */
export interface Forwarding {
  readonly upstream: Duplex;
  readonly path: string;
  /** Replaces the Host of the request. */
  readonly maskedHost?: string | undefined;
  /** What precedes the path in the client's address. */
  readonly prefix?: string | undefined;
  readonly framing: Framing;
  readonly maxHeaderBytes: number;
  /** Fields that are added to the request. */
  readonly extraHeaders?: readonly string[];
}

export interface Exchange extends Forwarding {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  /** Takes over the upstream connection after a complete response. Absent: it closes. Only for requests without a body. */
  readonly keep?: ((upstream: Duplex) => void) | undefined;
  /**
   * Called if the upstream connection breaks before a response. Nothing has been sent to the client by then. `isSilent`: nor has
   * anything come from the server.
   */
  readonly onBroken: (error: Error, isSilent: boolean) => void;
  /** Called on an internal error. Closes the client's connection. */
  readonly onFault: (error: unknown) => void;
}

export interface Answer {
  readonly outgoing: ClientRequest;
  readonly incoming: IncomingMessage;
  readonly progress: Progress;
}

interface Progress {
  answered: boolean;
  /** Something has come from the server. */
  heard: boolean;
  /** Something has come from it after the end of its response. */
  overlong: boolean;
  /** The whole response has been written to the client's connection. */
  whole: boolean;
}

export function forward(exchange: Exchange): void {
  const { req, res } = exchange;
  const keepAlive = exchange.keep !== undefined;
  const outgoing = sendHead({ ...exchange, method: req.method ?? "", rawHeaders: req.rawHeaders, keepAlive });
  const onFault = (error: unknown) => {
    outgoing.destroy();
    exchange.onFault(error);
  };
  const progress: Progress = { answered: false, heard: false, overlong: false, whole: false };

  res.once("close", () => {
    if (!res.writableFinished) outgoing.destroy();
  });
  // The server may respond before the request has arrived completely. The rest must be read before the client's next request.
  res.once("finish", () => {
    if (req.complete) return;
    req.unpipe(outgoing);
    req.resume();
  });
  let answer: IncomingMessage | undefined;
  const onResponse = (incoming: IncomingMessage) => {
    progress.answered = true;
    answer = incoming;
    answerClient(exchange, { outgoing, incoming, progress });
  };
  outgoing.once("response", guard(onResponse, onFault));
  outgoing.once("continue", () => {
    if (req.headers.expect !== undefined && !res.headersSent) res.writeContinue();
  });
  const broken = (error: Error) => {
    // After a complete response, the sandbox may break the connection or send other bytes. A response can be complete but not yet
    // forwarded: the parser fails on extra bytes that arrive in one packet with the end of the response.
    if (progress.whole || answer?.complete || res.destroyed) return;
    if (res.headersSent) reset(req.socket);
    else exchange.onBroken(error, !progress.heard);
  };
  outgoing.on("error", broken);
  // Node emits no error when it drops a response that changes the protocol without a request for it.
  outgoing.once("close", () => {
    if (!progress.answered) broken(new Error("the connection closed without a response"));
  });
  if (keepAlive) watch(exchange.upstream, { outgoing, progress, isComplete: () => answer?.complete ?? false });
  sendBody(exchange, outgoing);
}

interface Watched {
  readonly outgoing: ClientRequest;
  readonly progress: Progress;
  readonly isComplete: () => boolean;
}

/** Notes what comes over a connection that may be kept. The parser stops looking at the end of the response. */
function watch(upstream: Duplex, { outgoing, progress, isComplete }: Watched): void {
  let ended = false;
  // Called after the parser, which has read the same bytes.
  const onData = () => {
    progress.heard = true;
    progress.overlong ||= ended;
    ended = isComplete();
  };
  outgoing.once("socket", () => upstream.on("data", onData));
  outgoing.once("close", () => upstream.off("data", onData));
}

function sendBody({ req, framing }: Exchange, outgoing: ClientRequest): void {
  if (framing === "none") {
    outgoing.end();
    return;
  }
  // The server may respond, or send "100 Continue", before it receives any part of the body.
  outgoing.flushHeaders();
  req.pipe(outgoing, { end: false });
  req.once("end", () => {
    if (framing === "chunked" && req.rawTrailers.length > 0) outgoing.addTrailers(trailerFields(req.rawTrailers));
    outgoing.end();
  });
}

function answerClient(exchange: Exchange, answer: Answer): void {
  const { req, res, onBroken } = exchange;
  const { outgoing, incoming, progress } = answer;
  const framing = framingOf(incoming.rawHeaders);
  let line: StatusLine;
  try {
    // The edge forwards no transfer coding other than `chunked`.
    if (framing === undefined) throw new Error("the response has an unsupported transfer coding");
    line = statusLine(incoming);
  } catch (error) {
    incoming.on("error", () => {});
    outgoing.destroy();
    onBroken(asError(error), false);
    return;
  }
  writeHead(exchange, { line, rawHeaders: incoming.rawHeaders, framing: isBodiless(line.status) ? "none" : framing });
  incoming.on("error", () => {
    if (!progress.whole) reset(req.socket);
  });
  const finish = () => {
    progress.whole = true;
    if (res.chunkedEncoding && incoming.rawTrailers.length > 0) res.addTrailers(trailerFields(incoming.rawTrailers));
    res.end();
    if (exchange.keep && outgoing.shouldKeepAlive && outgoing.writableFinished) keepFree(exchange.keep, exchange.upstream, progress);
    else retire(outgoing);
  };
  const pipe = () => {
    const onEnd = () => {
      if (incoming.complete) finish();
    };
    incoming.once("end", guard(onEnd, exchange.onFault));
    incoming.pipe(res, { end: false });
  };
  if (framing === "length" && isLarge(exchange, incoming)) {
    pourAnswer(exchange, { ...answer, finish, pipe });
    return;
  }
  pipe();
  // Sends head and body in one packet if both have arrived, and the head at once if not.
  setImmediate(() => {
    if (!incoming.readableDidRead && !res.writableEnded && !res.destroyed) res.flushHeaders();
  });
}

/** The parser lets go of the connection in the next tick. */
function keepFree(keep: (upstream: Duplex) => void, upstream: Duplex, progress: Progress): void {
  upstream.once("free", () => {
    if (progress.overlong) upstream.destroy();
    else keep(upstream);
  });
}

interface Head {
  readonly line: StatusLine;
  readonly rawHeaders: RawHeaders;
  readonly framing: Framing;
}

function writeHead({ req, res, prefix = "", maskedHost }: Exchange, { line, rawHeaders, framing }: Head): void {
  // HTTP/1.0 has no chunked coding: the end of the connection ends the body.
  const plain = responseHeaders(rawHeaders, framing === "chunked" && req.httpVersion === "1.0" ? "close" : framing);
  const headers = responseForPath(plain, { prefix, host: maskedHost ?? req.headers.host });
  // The client still waits for "100 Continue", so its next bytes may be another request (see send-refusal.ts).
  if (req.headers.expect !== undefined && !req.complete) headers.push("Connection", "close");
  res.sendDate = false;
  res.writeHead(line.status, line.reason, headers);
}
