import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { Refusal } from "../answers/refusal.ts";
import { refusalMessage } from "../answers/refusal-message.ts";
import { reset } from "../connections/reset.ts";
import { streamFields } from "./stream-fields.ts";

/** How long a client may take to read a response of the edge itself. It is short, unlike those of servers. */
const LINGER_MS = 30_000;

/** Answers an HTTP/2 request without its sandbox. */
export function answerStream(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, refusal: Refusal): void {
  if (stream.headersSent || stream.destroyed || stream.closed) return;
  const { status, headers: raw, body } = refusalMessage(headers, refusal);
  const isEmpty = body === undefined || headers[":method"] === "HEAD";
  stream.respond([":status", String(status), ...streamFields(raw)], { endStream: isEmpty });
  if (!isEmpty) stream.end(body);
  const timer = setTimeout(() => reset(stream), LINGER_MS).unref();
  stream.once("close", () => clearTimeout(timer));
}
