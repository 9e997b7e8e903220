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
  // With its reason, or one that was set on `res` before would be sent.
  res.writeHead(refusal.status, STATUS_CODES[refusal.status] ?? "", headers);
  res.end(req.method === "HEAD" ? undefined : body);
}

/**
 * A request that we could not make sense of may have an end other than where we think it is. And a client that still waits for
 * "100 Continue" may now send its next request where we would read the body of this one.
 */
function mustClose(req: IncomingMessage, refusal: Refusal): boolean {
  return (refusal.kind === "text" && refusal.status !== 502) || req.headers.expect !== undefined;
}

function encode(req: IncomingMessage, refusal: Exclude<Refusal, { kind: "empty" }>): { type: string; text: string } {
  if (refusal.kind === "text") return { type: "text/plain; charset=utf-8", text: refusal.text };
  if (wantsHtml(req.headers)) return { type: "text/html; charset=utf-8", text: renderPage(refusal.status, refusal.page) };
  return { type: "application/json; charset=utf-8", text: JSON.stringify(refusal.body) };
}
