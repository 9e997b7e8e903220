// What a sandbox's program reads when its request is refused.

import type { ServerResponse } from "node:http";
import type { Refusal } from "./policy.ts";

const UNREACHABLE: readonly Refusal[] = ["proxy_failed", "unknown_name", "unreachable"];

export function refuse(response: ServerResponse, reason: Refusal): void {
  const { status, text } = about(reason);
  response.writeHead(status, { "content-type": "text/plain", "content-length": text.length, connection: "close" });
  response.end(text);
}

/** The same answer for a connection without a server. */
export function refusalText(reason: Refusal): string {
  const { status, text } = about(reason);
  return `HTTP/1.1 ${status} Refused\r\ncontent-type: text/plain\r\ncontent-length: ${text.length}\r\nconnection: close\r\n\r\n${text}`;
}

function about(reason: Refusal): { status: number; text: string } {
  const status = UNREACHABLE.includes(reason) ? 502 : 403;
  return { status, text: `The network policy of this sandbox does not let this request pass: ${reason}\n` };
}
