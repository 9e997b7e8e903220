// A WebSocket over one stream of an HTTP/2 connection (RFC 8441). The server in the sandbox sees the handshake of HTTP/1.1.

import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { guard } from "../connections/guard.ts";
import { reset } from "../connections/reset.ts";
import { listOf, upgradeResponseHeaders } from "../forwarding/headers.ts";
import { responseForPath } from "../forwarding/path-form.ts";
import { retire } from "../forwarding/retire.ts";
import { sendHead } from "../forwarding/send-head.ts";
import { splice } from "../forwarding/splice.ts";
import { answerFrom } from "./answer-from.ts";
import type { StreamExchange } from "./stream-exchange.ts";
import { streamFields } from "./stream-fields.ts";

const GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

export function forwardWebSocket(exchange: StreamExchange): void {
  const { stream, head, onBroken } = exchange;
  const outgoing = sendHead({ ...exchange, ...head, path: exchange.path, framing: "none", isUpgrade: true });
  const onFault = (error: unknown) => {
    outgoing.destroy();
    exchange.onFault(error);
  };
  let answered = false;
  const broken = (error: Error) => {
    if (answered || stream.destroyed) return;
    answered = true;
    outgoing.destroy();
    onBroken(error);
  };
  const clientGone = () => outgoing.destroy();
  stream.once("close", clientGone);
  const onUpgrade = (answer: IncomingMessage, socket: Duplex, early: Buffer) => {
    stream.off("close", clientGone);
    const fault = faultOf(answer, head.webSocketKey ?? "");
    if (stream.destroyed || stream.closed || fault) {
      reset(socket);
      if (fault) broken(fault);
      return;
    }
    answered = true;
    stream.respond([":status", "200", ...acceptedFields(exchange, answer)]);
    if (early.length > 0) stream.write(early);
    splice(stream, socket);
  };
  outgoing.once("upgrade", guard(onUpgrade, onFault));
  const onResponse = (incoming: IncomingMessage) => {
    incoming.on("error", () => reset(stream));
    const answer = answerFrom(exchange, incoming);
    if (answer instanceof Error) return broken(answer);
    // The client would take any 2xx for an open WebSocket.
    if (/^2/.test(answer.fields[1] ?? "")) return broken(new Error("the server ignored the handshake"));
    if (stream.destroyed || stream.closed) return;
    answered = true;
    stream.respond(answer.fields, { endStream: answer.isBodiless });
    incoming.once("end", () => retire(outgoing));
    if (answer.isBodiless) incoming.resume();
    else incoming.pipe(stream);
  };
  outgoing.once("response", guard(onResponse, onFault));
  outgoing.on("error", broken);
  outgoing.once("close", () => broken(new Error("the connection closed without a response")));
  outgoing.end();
}

/** Returns what is wrong with the handshake of the server. The client can't check it, because its own has no key. */
function faultOf({ rawHeaders }: IncomingMessage, key: string): Error | undefined {
  const wanted = createHash("sha1")
    .update(key + GUID)
    .digest("base64");
  const isWell =
    listOf(rawHeaders, "upgrade").includes("websocket") && listOf(rawHeaders, "sec-websocket-accept").includes(wanted.toLowerCase());
  return isWell ? undefined : new Error("the server answered with another protocol than WebSocket");
}

function acceptedFields({ prefix = "", maskedHost, head }: StreamExchange, answer: IncomingMessage): string[] {
  const host = maskedHost ?? head.rawHeaders[1];
  const out: string[] = [];
  const forwarded = streamFields(responseForPath(upgradeResponseHeaders(answer.rawHeaders), { prefix, host }));
  for (let at = 0; at < forwarded.length; at += 2) {
    const [name = "", value = ""] = forwarded.slice(at, at + 2);
    if (name !== "sec-websocket-accept" && name !== "content-length") out.push(name, value);
  }
  return out;
}
