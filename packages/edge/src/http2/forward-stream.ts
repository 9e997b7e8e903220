// One HTTP/2 request, forwarded over HTTP/1.1 on a connection of its own.
//
// Invariants:
// - If the response breaks off, the edge resets the stream. The client's other streams go on.
// - If the client resets the stream, the edge closes the upstream connection at once. A body that the client broke off never looks whole.
// - A side that does not read stops the other: streams have windows, and the upstream connection is not read meanwhile.

import type { ClientRequest, IncomingMessage } from "node:http";
import { constants, type ServerHttp2Stream } from "node:http2";
import { asError } from "@skerry/base";
import { guard } from "../connections/guard.ts";
import { reset } from "../connections/reset.ts";
import { trailerFields } from "../forwarding/headers.ts";
import { retire } from "../forwarding/retire.ts";
import { sendHead } from "../forwarding/send-head.ts";
import { answerFrom } from "./answer-from.ts";
import type { StreamExchange } from "./stream-exchange.ts";

interface Progress {
  answered: boolean;
  /** The whole response has been handed to the stream. */
  whole: boolean;
}

export function forwardStream(exchange: StreamExchange): void {
  const { stream, head, onBroken } = exchange;
  const outgoing = sendHead({ ...exchange, ...head, path: exchange.path });
  const onFault = (error: unknown) => {
    outgoing.destroy();
    exchange.onFault(error);
  };
  const progress: Progress = { answered: false, whole: false };
  let answer: IncomingMessage | undefined;
  const onResponse = (incoming: IncomingMessage) => {
    answer = incoming;
    answerClient(exchange, { outgoing, incoming, progress, onFault });
  };
  stream.once("close", () => {
    if (!progress.whole || !stream.writableFinished) outgoing.destroy();
  });
  outgoing.once("response", guard(onResponse, onFault));
  outgoing.once("continue", () => {
    if (stream.sentHeaders === undefined && !stream.destroyed && !stream.closed) stream.additionalHeaders({ ":status": 100 });
  });
  const broken = (error: Error) => {
    // A response can be complete but not yet forwarded: the parser fails on bytes after it, as in forward.ts.
    if (progress.whole || answer?.complete || stream.destroyed) return;
    if (progress.answered) reset(stream);
    else {
      progress.answered = true;
      onBroken(error);
    }
  };
  outgoing.on("error", broken);
  outgoing.once("close", () => {
    if (!progress.answered) broken(new Error("the connection closed without a response"));
  });
  sendBody(exchange, outgoing);
}

function sendBody({ stream, framing }: StreamExchange, outgoing: ClientRequest): void {
  if (framing === "none") {
    outgoing.end();
    return;
  }
  // The server may respond, or send "100 Continue", before it receives any part of the body.
  outgoing.flushHeaders();
  let trailers: string[] = [];
  stream.once("trailers", (_headers, _flags, raw: string[] = []) => {
    trailers = raw;
  });
  stream.pipe(outgoing, { end: false });
  stream.once("end", () => {
    // The library ends a stream that the client has reset without an error code. Its body may be incomplete.
    if (stream.closed || stream.aborted) {
      outgoing.destroy();
      return;
    }
    if (framing === "chunked" && trailers.length > 0) outgoing.addTrailers(trailerFields(trailers));
    outgoing.end();
  });
}

interface Answer {
  readonly outgoing: ClientRequest;
  readonly incoming: IncomingMessage;
  readonly progress: Progress;
  readonly onFault: (error: unknown) => void;
}

function answerClient(exchange: StreamExchange, { outgoing, incoming, progress, onFault }: Answer): void {
  const { stream, framing, onBroken } = exchange;
  incoming.on("error", () => {
    if (!progress.whole) reset(stream);
  });
  if (stream.destroyed || stream.closed) {
    outgoing.destroy();
    return;
  }
  progress.answered = true;
  const answer = answerFrom(exchange, incoming);
  if (answer instanceof Error) {
    outgoing.destroy();
    onBroken(answer);
    return;
  }
  const { fields, isBodiless, hasTrailers } = answer;
  try {
    stream.respond(fields, { endStream: isBodiless, waitForTrailers: hasTrailers });
  } catch (error) {
    outgoing.destroy();
    onBroken(asError(error));
    return;
  }
  const finish = () => {
    progress.whole = true;
    retire(outgoing);
    if (framing !== "none") stopBody(stream, outgoing);
  };
  if (isBodiless) {
    incoming.resume();
    finish();
    return;
  }
  if (hasTrailers)
    stream.once(
      "wantTrailers",
      guard(() => stream.sendTrailers(trailersOf(incoming)), onFault),
    );
  pour(incoming, stream, finish);
}

/** Hands over the body with backpressure. The last part of a body of known length ends the stream, so no empty frame follows. */
function pour(incoming: IncomingMessage, stream: ServerHttp2Stream, finish: () => void): void {
  let left = Number(incoming.headers["content-length"] ?? Number.NaN);
  const end = (last?: Buffer) => {
    finish();
    stream.end(last);
  };
  let isEnded = false;
  incoming.on("data", (chunk: Buffer) => {
    left -= chunk.length;
    if (left === 0) {
      isEnded = true;
      end(chunk);
    } else if (!stream.write(chunk)) incoming.pause();
  });
  stream.on("drain", () => incoming.resume());
  incoming.once("end", () => {
    if (incoming.complete && !isEnded) end();
  });
}

/** After the whole response, the rest of the request is of no use (RFC 9113, 8.1). */
function stopBody(stream: ServerHttp2Stream, outgoing: ClientRequest): void {
  stream.once("finish", () => {
    if (stream.readableEnded) return;
    stream.unpipe(outgoing);
    stream.close(constants.NGHTTP2_NO_ERROR);
  });
}

function trailersOf(incoming: IncomingMessage): Record<string, string[]> {
  const out: Record<string, string[]> = {};
  for (const [name, value] of trailerFields(incoming.rawTrailers)) {
    const lower = name.toLowerCase();
    out[lower] = [...(out[lower] ?? []), value];
  }
  return out;
}
