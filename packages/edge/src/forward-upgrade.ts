// A request to change the protocol (WebSocket and its like): both heads are rewritten, after a 101 the two connections
// become one byte stream. Any other answer is an ordinary one, after which the client's connection closes.

import { request as httpRequest, type IncomingMessage, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { fields, requestHeaders, responseHeaders, upgradeResponseHeaders } from "./headers.ts";
import { reset } from "./reset.ts";
import { responseOn } from "./response-on.ts";
import { framingOf } from "./routing.ts";
import { splice } from "./splice.ts";

export interface UpgradeExchange {
  readonly req: IncomingMessage;
  readonly client: Duplex;
  /** What the client sent after its head. */
  readonly clientHead: Buffer;
  readonly upstream: Duplex;
  readonly path: string;
  readonly maxHeaderBytes: number;
  readonly onBroken: (error: Error) => void;
}

/** True for an upgrade that the edge passes on. `h2c` is not one: the answer would not be HTTP/1.1. A body would be mixed up with the new protocol. */
export function isUpgrade(req: IncomingMessage): boolean {
  if ((req.headers.upgrade ?? "").toLowerCase().includes("h2c")) return false;
  return framingOf(req.rawHeaders) === "none" || req.headers["content-length"] === "0";
}

export function forwardUpgrade(exchange: UpgradeExchange): void {
  const { req, client, clientHead, upstream, onBroken } = exchange;
  const outgoing = httpRequest({
    createConnection: () => upstream,
    method: req.method,
    path: exchange.path,
    headers: requestHeaders(req.rawHeaders, { framing: "none", upgrade: true }),
    setHost: false,
    maxHeaderSize: exchange.maxHeaderBytes,
  });
  outgoing.maxHeadersCount = 0;
  let answered = false;
  const clientGone = () => outgoing.destroy();
  client.once("close", clientGone);
  outgoing.once("upgrade", (answer, stream, head) => {
    answered = true;
    client.off("close", clientGone);
    if (client.destroyed) {
      reset(stream);
      return;
    }
    client.write(rawHead(answer), "latin1");
    if (head.length > 0) client.write(head);
    if (clientHead.length > 0) stream.write(clientHead);
    splice(client, stream);
  });
  outgoing.once("response", (answer) => {
    const framing = framingOf(answer.rawHeaders);
    if (framing === undefined) {
      answer.on("error", () => {});
      outgoing.destroy(new Error("unsupported transfer coding in an answer"));
      return;
    }
    answered = true;
    answer.once("error", () => reset(client));
    const res = responseOn(req, client);
    res.sendDate = false;
    const headers = [...responseHeaders(answer.rawHeaders, framing), "Connection", "close"];
    res.writeHead(answer.statusCode ?? 502, answer.statusMessage ?? "", headers);
    answer.pipe(res);
  });
  const broken = (error: Error) => {
    if (answered || client.destroyed) return;
    answered = true;
    onBroken(error);
  };
  outgoing.on("error", broken);
  outgoing.once("close", () => broken(new Error("closed without an answer")));
  outgoing.end();
}

function rawHead(answer: IncomingMessage): string {
  const lines = [`HTTP/1.1 101 ${answer.statusMessage || STATUS_CODES[101]}`];
  for (const [name, , value] of fields(upgradeResponseHeaders(answer.rawHeaders))) lines.push(`${name}: ${value}`);
  return `${lines.join("\r\n")}\r\n\r\n`;
}
