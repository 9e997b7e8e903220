// One HTTP exchange with the server inside the sandbox: heads are rewritten, bodies are piped, ends are passed on as they came.
//
// Invariants: an answer that broke off resets the client's connection; a client that went away closes the upstream at once;
// the upstream connection carries this one request only. A FIN from the client counts as going away, as nginx and Go have it.

import { type ClientRequest, request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { asError } from "@skerry/base";
import { guard } from "../connections/guard.ts";
import { reset } from "../connections/reset.ts";
import { framingOf } from "../routing/route-request.ts";
import { type Framing, type RawHeaders, requestHeaders, responseHeaders, trailerFields } from "./headers.ts";
import { isLarge, pourAnswer } from "./pour-answer.ts";
import { retire } from "./retire.ts";
import { isBodiless, type StatusLine, statusLine } from "./status-line.ts";

export interface Exchange {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly upstream: Duplex;
  readonly path: string;
  readonly framing: Framing;
  readonly maxHeaderBytes: number;
  /** The upstream broke before it answered; nothing has been sent to the client. */
  readonly onBroken: (error: Error) => void;
  /** A mistake of ours; ends the client's connection. */
  readonly onFault: (error: unknown) => void;
}

export interface Answer {
  readonly outgoing: ClientRequest;
  readonly incoming: IncomingMessage;
  readonly progress: Progress;
}

interface Progress {
  answered: boolean;
  /** Everything of the answer has been handed to the client's side. */
  whole: boolean;
}

/** Methods for which "no body" must be said as a length, because a body would be usual (RFC 9110, 8.6). */
const BODY_IS_USUAL: ReadonlySet<string> = new Set(["POST", "PUT", "PATCH"]);

export function forward(exchange: Exchange): void {
  const { req, res } = exchange;
  const outgoing = sendHead(exchange);
  const onFault = (error: unknown) => {
    outgoing.destroy();
    exchange.onFault(error);
  };
  const progress: Progress = { answered: false, whole: false };

  res.once("close", () => {
    if (!res.writableFinished) outgoing.destroy();
  });
  // Answered before it had arrived whole: what is left of the request stands before the client's next one.
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
    // After a whole answer the sandbox may break the connection as it likes, or send what is no answer. It may have arrived whole and
    // not have been handed on: the parser stops with an error at bytes that came in one packet with the end of the answer.
    if (progress.whole || answer?.complete || res.destroyed) return;
    if (res.headersSent) reset(req.socket);
    else exchange.onBroken(error);
  };
  outgoing.on("error", broken);
  // Node drops an answer that changes the protocol unasked without an error.
  outgoing.once("close", () => {
    if (!progress.answered) broken(new Error("closed without an answer"));
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

function answerClient(exchange: Exchange, answer: Answer): void {
  const { req, res, onBroken } = exchange;
  const { outgoing, incoming, progress } = answer;
  const framing = framingOf(incoming.rawHeaders);
  let line: StatusLine;
  try {
    // A coding other than `chunked` would be lost on the way.
    if (framing === undefined) throw new Error("unsupported transfer coding in an answer");
    line = statusLine(incoming);
  } catch (error) {
    incoming.on("error", () => {});
    outgoing.destroy();
    onBroken(asError(error));
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
    retire(outgoing);
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
  // One packet when the body came along with the head; no waiting for it when it did not.
  setImmediate(() => {
    if (!incoming.readableDidRead && !res.writableEnded && !res.destroyed) res.flushHeaders();
  });
}

interface Head {
  readonly line: StatusLine;
  readonly rawHeaders: RawHeaders;
  readonly framing: Framing;
}

function writeHead({ req, res }: Exchange, { line, rawHeaders, framing }: Head): void {
  // HTTP/1.0 knows no chunks: the end of the connection is the end of the body.
  const headers = responseHeaders(rawHeaders, framing === "chunked" && req.httpVersion === "1.0" ? "close" : framing);
  // Still waiting for our "100 Continue": its next bytes may be another request (see send-refusal.ts).
  if (req.headers.expect !== undefined && !req.complete) headers.push("Connection", "close");
  res.sendDate = false;
  res.writeHead(line.status, line.reason, headers);
}
