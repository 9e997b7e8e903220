// Requests that change the protocol, such as WebSocket. The edge rewrites both heads. After a 101, it joins the two connections to
// one byte stream. Any other response is forwarded as usual, and then the client's connection closes.

import { type IncomingMessage, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { asError } from "@skerry/base";
import { responseOn } from "../answers/response-on.ts";
import { guard } from "../connections/guard.ts";
import { reset } from "../connections/reset.ts";
import { framingOf } from "../routing/route-request.ts";
import { fields, responseHeaders, upgradeResponseHeaders } from "./headers.ts";
import { responseForPath } from "./path-form.ts";
import { retire } from "./retire.ts";
import { sendHead } from "./send-head.ts";
import { splice } from "./splice.ts";
import { isBodiless, statusLine } from "./status-line.ts";

export interface UpgradeExchange {
  readonly req: IncomingMessage;
  readonly client: Duplex;
  /** Bytes that the client sent after the head of its request. */
  readonly clientHead: Buffer;
  readonly upstream: Duplex;
  readonly path: string;
  /** What precedes the path in the client's address. */
  readonly prefix: string;
  /** Replaces the Host of the request. */
  readonly maskedHost: string | undefined;
  readonly maxHeaderBytes: number;
  readonly onBroken: (error: Error) => void;
  /** Called on an internal error. Closes the client's connection. */
  readonly onFault: (error: unknown) => void;
}

/**
 * Returns whether the edge forwards the request as an upgrade. It does not for `h2c`, whose response would not be HTTP/1.1, and for
 * requests with a body, which would be confused with the new protocol.
 */
export function isUpgrade(req: IncomingMessage): boolean {
  if ((req.headers.upgrade ?? "").toLowerCase().includes("h2c")) return false;
  return framingOf(req.rawHeaders) === "none" || req.headers["content-length"] === "0";
}

export function forwardUpgrade(exchange: UpgradeExchange): void {
  const { req, client, clientHead, onBroken } = exchange;
  const outgoing = sendHead({ ...exchange, method: req.method ?? "", rawHeaders: req.rawHeaders, framing: "none", isUpgrade: true });
  const onFault = (error: unknown) => {
    outgoing.destroy();
    exchange.onFault(error);
  };
  let answered = false;
  const clientGone = () => outgoing.destroy();
  client.once("close", clientGone);
  const onUpgrade = (answer: IncomingMessage, stream: Duplex, head: Buffer) => {
    answered = true;
    client.off("close", clientGone);
    if (client.destroyed) {
      reset(stream);
      return;
    }
    client.write(rawHead(answer, exchange), "latin1");
    if (head.length > 0) client.write(head);
    if (clientHead.length > 0) stream.write(clientHead);
    splice(client, stream);
  };
  outgoing.once("upgrade", guard(onUpgrade, onFault));
  const onResponse = (answer: IncomingMessage) => {
    const head = headOf(answer, exchange);
    if (head instanceof Error) {
      answer.on("error", () => {});
      outgoing.destroy(head);
      return;
    }
    answered = true;
    answer.on("error", () => reset(client));
    const res = responseOn(exchange.req, client);
    res.sendDate = false;
    res.writeHead(head.status, head.reason, head.headers);
    answer.once("end", () => retire(outgoing));
    answer.pipe(res);
  };
  outgoing.once("response", guard(onResponse, onFault));
  const broken = (error: Error) => {
    if (answered || client.destroyed) return;
    answered = true;
    onBroken(error);
  };
  outgoing.on("error", broken);
  outgoing.once("close", () => broken(new Error("the connection closed without a response")));
  outgoing.end();
}

/** Returns an error for a response that cannot be forwarded. */
function headOf(answer: IncomingMessage, exchange: UpgradeExchange): { status: number; reason: string; headers: string[] } | Error {
  const framing = framingOf(answer.rawHeaders);
  if (framing === undefined) return new Error("the response has an unsupported transfer coding");
  try {
    const line = statusLine(answer);
    const headers = responseHeaders(answer.rawHeaders, isBodiless(line.status) ? "none" : framing);
    return { ...line, headers: [...asSeen(headers, exchange), "Connection", "close"] };
  } catch (error) {
    return asError(error);
  }
}

function rawHead(answer: IncomingMessage, exchange: UpgradeExchange): string {
  const lines = [`HTTP/1.1 101 ${statusLine(answer).reason || STATUS_CODES[101]}`];
  for (const [name, , value] of fields(asSeen(upgradeResponseHeaders(answer.rawHeaders), exchange))) lines.push(`${name}: ${value}`);
  return `${lines.join("\r\n")}\r\n\r\n`;
}

function asSeen(headers: string[], { prefix, maskedHost, req }: UpgradeExchange): string[] {
  return responseForPath(headers, { prefix, host: maskedHost ?? req.headers.host });
}
