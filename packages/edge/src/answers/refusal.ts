import type { Target } from "@skerry/wire";
import type { Excess } from "../connections/traffic-limits.ts";
import type { Absence } from "../ports.ts";

/** The page that a browser gets instead of the JSON. `detail` is plain text; the renderer escapes it. */
export interface Page {
  readonly title: string;
  readonly detail: string;
}

/** A response that the edge itself sends. Clients match on the texts, so they are part of the interface. */
export type Refusal =
  | { readonly kind: "text"; readonly status: number; readonly text: string }
  /** Without a body. */
  | { readonly kind: "empty"; readonly status: number; readonly headers: readonly string[] }
  | {
      readonly kind: "json";
      readonly status: number;
      readonly body: Readonly<Record<string, unknown>>;
      readonly page: Page;
      /** Set when a retry may succeed soon. */
      readonly retryAfterSeconds?: number;
      /** Allows scripts of all origins to read the response. */
      readonly isForScripts?: boolean;
    };

export const ANY_ORIGIN: readonly string[] = ["Access-Control-Allow-Origin", "*"];

/** Retry delay that clients are told. Most pauses and resumes complete within it. */
const RETRY_AFTER_SECONDS = 5;

export function badRequest(text: string): Refusal {
  return { kind: "text", status: 400, text };
}

/** The edge cannot reach the sandbox's node, or the control plane. */
export function unroutable(): Refusal {
  return { kind: "text", status: 502, text: "Failed to route request to sandbox" };
}

/** The platform API cannot be reached, or closed the connection before it answered. Clients of the API expect JSON. */
export function apiUnreachable(): Refusal {
  const message = "The API can't be reached";
  return { kind: "json", status: 502, body: { code: 502, message }, page: { title: "API Not Reachable", detail: `${message}.` } };
}

/**
 * The sandbox is unknown, has ended, or is paused and cannot be woken by this request. SDKs match on "was not found" to tell a
 * dead sandbox from a failing one, so the message is the same for all three. Further details are in separate fields.
 */
export function sandboxNotFound(target: Target, absence: Absence = { state: "unknown" }): Refusal {
  const known = absence.state === "unknown" ? {} : absence;
  return {
    kind: "json",
    status: 502,
    body: { sandboxId: target.sandboxId, message: "The sandbox was not found", code: 502, ...known },
    page: { title: "Sandbox Not Found", detail: `The sandbox ${target.sandboxId} was not found. ${explain(absence)}` },
  };
}

/** End reasons in words, for the page. Other reasons are shown as they are. */
const END_REASONS: Readonly<Record<string, string>> = {
  request: "it was killed on request",
  timeout: "its timeout was reached",
  memory: "it exceeded its memory limit",
  exited: "its first process exited",
  node_lost: "its host lost it",
};

function explain({ state, endReason, endedAt }: Absence): string {
  switch (state) {
    case "unknown":
      return "It may have been killed, or it may have reached its timeout.";
    case "paused":
      return "It is paused. Only its owner can resume it.";
    case "ended": {
      const when = endedAt === undefined ? "" : ` at ${endedAt}`;
      const why = endReason === undefined ? "" : `: ${END_REASONS[endReason] ?? endReason}`;
      return `It ended${when}${why}.`;
    }
  }
}

/** The sandbox is paused, and the request has no credentials that allow it to wake the sandbox. */
export function wakeDenied(target: Target): Refusal {
  const message = "This sandbox can't be resumed with the credentials provided. Check your access token and try again.";
  return notWoken(target, { status: 403, title: "Unable to Resume Sandbox", message });
}

/** The sandbox is private, and the request does not carry its traffic token. */
export function trafficTokenRequired({ sandboxId }: Target, fault: "missing" | "invalid"): Refusal {
  const isMissing = fault === "missing";
  const message = isMissing
    ? "Sandbox is secured with traffic access token. Token header 'e2b-traffic-access-token' is missing"
    : "Sandbox is secured with traffic access token. Provided token in header 'e2b-traffic-access-token' is invalid";
  const title = isMissing ? "Missing Traffic Access Token" : "Invalid Traffic Access Token";
  return { kind: "json", status: 403, body: { sandboxId, message, code: 403 }, page: { title, detail: message } };
}

/** The request shows a link that does not open the port, or not for this method. */
export function linkRefused({ sandboxId }: Target, fault: "invalid" | "method"): Refusal {
  const message =
    fault === "invalid"
      ? "This link is not valid. It may have expired, or it was revoked, or it belongs to another address"
      : "This link does not permit this method";
  return {
    kind: "json",
    status: 403,
    body: { sandboxId, message, code: 403 },
    page: { title: fault === "invalid" ? "Link Not Valid" : "Method Not Permitted", detail: `${message}.` },
  };
}

/** Too many links from one address were not valid. */
export function tooManyLinks(): Refusal {
  return tooManyAttempts("Too many links that are not valid. Try again in a moment.");
}

/** A sandbox, or its team, has as much traffic as the edge permits. The id is absent for a request that did not name the sandbox. */
export function tooMuchTraffic({ scope, of, limit }: Excess, sandboxId?: string): Refusal {
  const who = scope === "group" ? "The team of the sandbox" : "The sandbox";
  const isOpen = of === "connections";
  const message = isOpen
    ? `${who} has too many concurrent incoming connections (limit: ${limit})`
    : `${who} has too many incoming requests (limit: ${limit} per second)`;
  const id = sandboxId === undefined ? {} : { sandboxId };
  return {
    kind: "json",
    status: 429,
    body: { ...id, message, [isOpen ? "connectionLimit" : "requestLimit"]: limit, code: 429 },
    page: { title: isOpen ? "Too Many Connections" : "Too Many Requests", detail: message },
    // A second refills half of a bucket of requests.
    retryAfterSeconds: isOpen ? RETRY_AFTER_SECONDS : 1,
  };
}

/** The sandbox was still changing its state when the wait timed out. */
export function stillTransitioning(target: Target): Refusal {
  const message = "The sandbox is still transitioning. Try again in a moment.";
  return notWoken(target, { status: 409, title: "Sandbox Still Transitioning", message, retryAfterSeconds: RETRY_AFTER_SECONDS });
}

/** The team must first kill or pause another sandbox, so there is no retry delay to suggest. */
export function sandboxLimitReached(target: Target, message: string): Refusal {
  return notWoken(target, { status: 429, title: "Sandbox Limit Reached", message: message === "" ? "Sandbox limit reached" : message });
}

/** The sandbox's host has no capacity, or does not answer. */
export function cannotWakeNow(target: Target): Refusal {
  const message = "The sandbox can't be resumed for now. Try again in a moment.";
  return notWoken(target, { status: 503, title: "Unable to Resume Sandbox", message, retryAfterSeconds: RETRY_AFTER_SECONDS });
}

function notWoken(
  { sandboxId }: Target,
  { status, title, message, ...rest }: { status: number; title: string; message: string; retryAfterSeconds?: number },
): Refusal {
  return { kind: "json", status, body: { sandboxId, message, code: status }, page: { title, detail: message }, ...rest };
}

/** The sandbox is running, but no server answers on the port, or the server closed the connection before it answered. */
export function portClosed(target: Target): Refusal {
  return {
    kind: "json",
    status: 502,
    body: { sandboxId: target.sandboxId, message: "The sandbox is running but port is not open", port: target.port, code: 502 },
    page: {
      title: "Closed Port Error",
      detail: `The sandbox ${target.sandboxId} is running, but there is no service running on port ${target.port}.`,
    },
  };
}

/**
 * The text of the agent for a signature that it does not accept. The edge gives the same answer for every signature that leads
 * to no running sandbox, so that it tells nothing about sandboxes that exist.
 */
export function invalidSignature(): Refusal {
  return {
    kind: "json",
    status: 401,
    body: { code: 401, message: "invalid signature" },
    page: { title: "Invalid Link", detail: "No running sandbox accepts this link. Its sandbox may be paused, or may have ended." },
    isForScripts: true,
  };
}

/** Too many links from one address led to no sandbox. */
export function tooManySignatures(): Refusal {
  return { ...tooManyAttempts("Too many links without a valid signature. Try again in a moment."), isForScripts: true };
}

function tooManyAttempts(message: string): Refusal & { readonly kind: "json" } {
  return {
    kind: "json",
    status: 429,
    body: { code: 429, message },
    page: { title: "Too Many Requests", detail: message },
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  };
}

export function methodNotAllowed(methods: readonly string[]): Refusal {
  return { kind: "empty", status: 405, headers: ["Allow", methods.join(", "), "Content-Length", "0"] };
}

/** Lets scripts of any web page use a signed URL. */
export function preflightAnswer(methods: readonly string[], requestedHeaders: readonly string[]): Refusal {
  const headers = ["Vary", "Origin, Access-Control-Request-Method, Access-Control-Request-Headers", ...ANY_ORIGIN];
  headers.push("Access-Control-Allow-Methods", methods.join(", "), "Access-Control-Max-Age", "7200");
  if (requestedHeaders.length > 0) headers.push("Access-Control-Allow-Headers", requestedHeaders.join(", "));
  return { kind: "empty", status: 204, headers };
}

export function reservedPath(path: string): Refusal {
  return {
    kind: "json",
    status: 404,
    body: {
      message: "This endpoint is reserved for the E2B control plane and is not reachable through the sandbox URL",
      path,
      code: 404,
    },
    page: { title: "Endpoint Not Available", detail: `The path ${path} is reserved for the platform itself.` },
  };
}
