// Whether the link that a request shows opens the port.

import { untilAborted } from "@skerry/base";
import { LINK_COOKIE, type LinkProof, type Target } from "@skerry/wire";
import { badRequest, linkRefused, type Refusal, tooManyLinks, unroutable } from "../answers/refusal.ts";
import type { RefusalLog } from "../answers/refusal-log.ts";
import { type RawHeaders, valuesOf } from "../forwarding/headers.ts";
import type { UpstreamDeps } from "../routing/open-upstream.ts";
import type { RequestHead } from "../routing/route-request.ts";
import type { LinkLookup } from "./link-lookup.ts";
import type { ShownLink, ShownToken } from "./shown-link.ts";

export type LinkFault = "invalid" | "method" | "limited";

export type LinkEntry =
  /** The request may enter without a traffic token, and wake the sandbox. */
  | { readonly kind: "open"; readonly proof: LinkProof }
  /** The request shows a cookie that opens nothing. It may enter in another way. */
  | { readonly kind: "closed"; readonly fault: LinkFault; readonly linkId: string | undefined }
  | { readonly kind: "refused"; readonly refusal: Refusal };

export interface EnterDeps extends Pick<UpstreamDeps, "logger"> {
  readonly links: LinkLookup;
  readonly refusalLog: RefusalLog;
}

export interface Entering {
  readonly target: Target;
  readonly link: ShownLink;
  /** The path for the sandbox, without the parameter of the link. */
  readonly path: string;
  /** What precedes the path in the client's address. */
  readonly prefix: string;
  readonly head: RequestHead;
  readonly signal: AbortSignal;
}

/** Fields that make some servers treat a request like one with another method. */
const OVERRIDES = ["x-http-method-override", "x-http-method", "x-method-override"];

/**
 * A link in the query or in the header must be valid, because the client relies on it. One in the query of a page is answered with a
 * cookie and a redirect to the same page, so that the token does not stay in the address.
 */
export async function enterByLink(deps: EnterDeps, entering: Entering): Promise<LinkEntry> {
  const { target, link, head, signal } = entering;
  try {
    const tried = await untilAborted(tryLink(deps, entering), signal);
    if ("fault" in tried) {
      if (link.by === "cookie") return { kind: "closed", ...tried };
      noteLink(deps.refusalLog, { target, ...tried }, head.clientAddress());
      return refused(refusalFor(target, tried.fault));
    }
    if (link.by === "query" && isPage(head)) return refused(redirect(entering, tried));
    const { linkId, digest } = tried.shown;
    return { kind: "open", proof: { linkId, digest } };
  } catch (err) {
    if (!signal.aborted) deps.logger.warn({ err, sandbox_id: target.sandboxId }, "finding a link failed");
    return refused(unroutable());
  }
}

export function refusalFor(target: Target, fault: LinkFault): Refusal {
  return fault === "limited" ? tooManyLinks() : linkRefused(target, fault);
}

export function noteLink(
  log: RefusalLog,
  { target, fault, linkId }: { readonly target: Target; readonly fault: LinkFault; readonly linkId: string | undefined },
  clientAddress: string,
): void {
  log.note({ ...target, ...(linkId === undefined ? {} : { linkId }) }, `link ${fault}`, clientAddress);
}

interface Opened {
  readonly shown: ShownToken;
  readonly expiresInMs: number;
}

type Tried = Opened | { readonly fault: LinkFault; readonly linkId: string | undefined };

async function tryLink({ links }: EnterDeps, { target, link, head }: Entering): Promise<Tried> {
  let fault: LinkFault = "invalid";
  for (const shown of link.tokens) {
    const answer = await links.find(target, shown, head.clientAddress());
    if (answer.kind === "limited") fault = "limited";
    if (answer.kind !== "valid") continue;
    if (permits(answer.link.methods, head)) return { shown, expiresInMs: answer.link.expiresInMs };
    fault = "method";
  }
  return { fault, linkId: link.tokens[0]?.linkId };
}

function permits(methods: readonly string[], { method, rawHeaders }: RequestHead): boolean {
  if (methods.length === 0) return true;
  return methods.includes(method) && !OVERRIDES.some((name) => valuesOf(rawHeaders, name).length > 0);
}

/** A browser follows the redirect of an upgrade as little as that of a POST repeats its body. */
function isPage({ method, rawHeaders }: { readonly method: string; readonly rawHeaders: RawHeaders }): boolean {
  return (method === "GET" || method === "HEAD") && valuesOf(rawHeaders, "upgrade").length === 0;
}

function redirect({ path, prefix, head }: Entering, { shown, expiresInMs }: Opened): Refusal {
  // Without a prefix, a browser would read this as the address of another host.
  if (!/^\/(?![/\\])/.test(path)) return badRequest("Invalid request target");
  const attributes = [`Path=${prefix}/`, `Max-Age=${Math.max(1, Math.floor(expiresInMs / 1_000))}`, "HttpOnly", "SameSite=Lax"];
  if (head.isSecure()) attributes.push("Secure");
  const cookie = [`${LINK_COOKIE}=${shown.token}`, ...attributes].join("; ");
  const headers = ["Location", prefix + path, "Set-Cookie", cookie, "Cache-Control", "no-store", "Referrer-Policy", "no-referrer"];
  return { kind: "empty", status: 302, headers: [...headers, "Content-Length", "0"] };
}

function refused(refusal: Refusal): { readonly kind: "refused"; readonly refusal: Refusal } {
  return { kind: "refused", refusal };
}
