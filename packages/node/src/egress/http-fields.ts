// The fields of a message that is written anew. The parser has taken the body apart, so its framing is chosen here again.

import type { IncomingMessage } from "node:http";

/** They are about one connection and not about the message. */
const OF_ONE_CONNECTION = new Set(["connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"]);

/** Field names and values in turn. */
export function requestFields(request: IncomingMessage): string[] {
  const fields = withoutOwn(request.rawHeaders);
  const { "transfer-encoding": encoding, "content-length": length, upgrade, connection } = request.headers;
  if (encoding !== undefined) fields.push("Transfer-Encoding", "chunked");
  // Otherwise a body of unknown length would be announced for a method that usually has one.
  else if (length === undefined && request.method !== "GET" && request.method !== "HEAD") fields.push("Content-Length", "0");
  if (upgrade !== undefined && /\bupgrade\b/i.test(connection ?? "")) fields.push("Connection", "Upgrade", "Upgrade", upgrade);
  return fields;
}

export function responseFields(rawHeaders: readonly string[]): string[] {
  return withoutOwn(rawHeaders);
}

function withoutOwn(rawHeaders: readonly string[]): string[] {
  const kept: string[] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const [name = "", value = ""] = rawHeaders.slice(at, at + 2);
    if (!OF_ONE_CONNECTION.has(name.toLowerCase())) kept.push(name, value);
  }
  return kept;
}

/** The head of an answer as it goes over the connection, for connections that an upgrade has taken from the server. */
export function headText({ statusCode = 502, statusMessage = "", rawHeaders }: IncomingMessage, { isUpgrade = false } = {}): string {
  const fields = isUpgrade ? rawHeaders : [...withoutOwn(rawHeaders), "Connection", "close"];
  const lines = Array.from({ length: Math.floor(fields.length / 2) }, (_, at) => `${fields[2 * at]}: ${fields[2 * at + 1]}\r\n`);
  return `HTTP/1.1 ${statusCode} ${statusMessage}\r\n${lines.join("")}\r\n`;
}
