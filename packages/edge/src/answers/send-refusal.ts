import { type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import { renderPage } from "./error-page.ts";
import { ANY_ORIGIN, type Refusal } from "./refusal.ts";
import { wantsHtml } from "./wants-html.ts";

export function sendRefusal(req: IncomingMessage, res: ServerResponse, refusal: Refusal): void {
  if (res.headersSent || res.destroyed) return;
  if (refusal.kind === "empty") {
    res.writeHead(refusal.status, [...refusal.headers, ...(mustClose(req, refusal) ? ["Connection", "close"] : [])]).end();
    return;
  }
  const { type, text } = encode(req, refusal);
  const body = Buffer.from(text);
  const headers = ["Content-Type", type, "Content-Length", String(body.length), "X-Content-Type-Options", "nosniff"];
  if (refusal.kind === "json" && refusal.retryAfterSeconds !== undefined) headers.push("Retry-After", String(refusal.retryAfterSeconds));
  if (refusal.kind === "json" && refusal.isForScripts) headers.push(...ANY_ORIGIN);
  if (mustClose(req, refusal)) headers.push("Connection", "close");
  // Without a reason phrase here, Node would send one that was set on `res` earlier.
  res.writeHead(refusal.status, STATUS_CODES[refusal.status] ?? "", headers);
  res.end(req.method === "HEAD" ? undefined : body);
}

/**
 * Returns whether the connection must close after the response. The end of a request that the edge could not parse is unknown.
 * A client that still waits for "100 Continue" may send its next request where the edge expects the body of this one.
 */
function mustClose(req: IncomingMessage, refusal: Refusal): boolean {
  return (refusal.kind === "text" && refusal.status !== 502) || req.headers.expect !== undefined;
}

function encode(req: IncomingMessage, refusal: Exclude<Refusal, { kind: "empty" }>): { type: string; text: string } {
  if (refusal.kind === "text") return { type: "text/plain; charset=utf-8", text: refusal.text };
  if (wantsHtml(req.headers)) return { type: "text/html; charset=utf-8", text: renderPage(refusal.status, refusal.page) };
  return { type: "application/json; charset=utf-8", text: JSON.stringify(refusal.body) };
}
