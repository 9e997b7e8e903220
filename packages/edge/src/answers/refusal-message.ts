import { type IncomingHttpHeaders, STATUS_CODES } from "node:http";
import { renderPage } from "./error-page.ts";
import { ANY_ORIGIN, type Refusal } from "./refusal.ts";
import { wantsHtml } from "./wants-html.ts";

export interface RefusalMessage {
  readonly status: number;
  readonly reason: string;
  readonly headers: readonly string[];
  /** Undefined: none. */
  readonly body: Buffer | undefined;
}

/** Writes a refusal as a response to a request with these fields: a page for people, JSON for programs. */
export function refusalMessage(headers: IncomingHttpHeaders, refusal: Refusal): RefusalMessage {
  const reason = STATUS_CODES[refusal.status] ?? "";
  if (refusal.kind === "empty") return { status: refusal.status, reason, headers: refusal.headers, body: undefined };
  const { type, text } = encode(headers, refusal);
  const body = Buffer.from(text);
  const out = ["Content-Type", type, "Content-Length", String(body.length), "X-Content-Type-Options", "nosniff"];
  if (refusal.kind === "json" && refusal.retryAfterSeconds !== undefined) out.push("Retry-After", String(refusal.retryAfterSeconds));
  if (refusal.kind === "json" && refusal.isForScripts) out.push(...ANY_ORIGIN);
  return { status: refusal.status, reason, headers: out, body };
}

function encode(headers: IncomingHttpHeaders, refusal: Exclude<Refusal, { kind: "empty" }>): { type: string; text: string } {
  if (refusal.kind === "text") return { type: "text/plain; charset=utf-8", text: refusal.text };
  if (wantsHtml(headers)) return { type: "text/html; charset=utf-8", text: renderPage(refusal.status, refusal.page) };
  return { type: "application/json; charset=utf-8", text: JSON.stringify(refusal.body) };
}
