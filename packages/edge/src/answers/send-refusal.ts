import type { IncomingMessage, ServerResponse } from "node:http";
import type { Refusal } from "./refusal.ts";
import { refusalMessage } from "./refusal-message.ts";

export function sendRefusal(req: IncomingMessage, res: ServerResponse, refusal: Refusal): void {
  if (res.headersSent || res.destroyed) return;
  const { status, reason, headers, body } = refusalMessage(req.headers, refusal);
  // Without a reason phrase here, Node would send one that was set on `res` earlier.
  res.writeHead(status, reason, [...headers, ...(mustClose(req, refusal) ? ["Connection", "close"] : [])]);
  res.end(req.method === "HEAD" ? undefined : body);
}

/**
 * Returns whether the connection must close after the response. The end of a request that the edge could not parse is unknown.
 * A client that still waits for "100 Continue" may send its next request where the edge expects the body of this one.
 */
function mustClose(req: IncomingMessage, refusal: Refusal): boolean {
  return (refusal.kind === "text" && refusal.status !== 502) || req.headers.expect !== undefined;
}
