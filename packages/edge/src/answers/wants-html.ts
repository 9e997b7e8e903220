import type { IncomingHttpHeaders } from "node:http";

const BROWSER = /mozilla|chrome|safari|firefox|edge|opera|msie/i;
const PROGRAM_MODES: ReadonlySet<string> = new Set(["cors", "no-cors", "same-origin", "websocket"]);

/** True for a page load in a browser; false for other programs and for scripts in a page. */
export function wantsHtml(headers: IncomingHttpHeaders): boolean {
  if (!BROWSER.test(headers["user-agent"] ?? "")) return false;
  const accept = (headers.accept ?? "").toLowerCase();
  if (accept.includes("application/json") && !accept.includes("text/html")) return false;
  const mode = String(headers["sec-fetch-mode"] ?? "").toLowerCase();
  if (PROGRAM_MODES.has(mode)) return false;
  return mode === "navigate" || headers["x-requested-with"] === undefined;
}
