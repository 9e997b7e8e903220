// Determines the target of a request from its head, without any lookup.

import { AGENT_PORT, hostNameOf, parsePathTarget, parseTarget, type Target } from "@skerry/wire";
import { badRequest, invalidSignature, methodNotAllowed, preflightAnswer, type Refusal, reservedPath } from "../answers/refusal.ts";
import type { RefusalReason } from "../answers/refusal-log.ts";
import { type Framing, listOf, type RawHeaders, valuesOf } from "../forwarding/headers.ts";
import { readLink, type ShownLink } from "../links/shown-link.ts";
import { readSignedUrl, type SignedFile } from "../signatures/signed-request.ts";
import { isReservedPath } from "./reserved-path.ts";

export interface RequestHead {
  readonly method: string;
  /** The request target, as in the request line. */
  readonly url: string;
  readonly rawHeaders: RawHeaders;
  readonly clientAddress: () => string;
  /** Whether the client uses TLS. */
  readonly isSecure: () => boolean;
}

export type Routing =
  | {
      readonly kind: "routed";
      readonly target: Target;
      readonly path: string;
      readonly framing: Framing;
      /** What precedes the path in the client's address. Empty except in the path form. */
      readonly prefix: string;
      readonly link: ShownLink | undefined;
    }
  /** The request does not name a sandbox, but its URL has a signature. */
  | { readonly kind: "signed"; readonly file: SignedFile; readonly path: string; readonly framing: Framing }
  /** `trace`: why the refusal is logged. `named`: the sandbox in question, which need not exist. */
  | { readonly kind: "refused"; readonly refusal: Refusal; readonly trace?: RefusalReason; readonly named?: Target };

const ABSOLUTE_FORM = /^https?:\/\/([^/?#]*)(.*)$/i;

/**
 * Runs the checks that need only the request itself, in the order in which clients see them fail. Requests on the host name `pathHost` name
 * their sandbox in the path, and in no other way.
 */
export function routeRequest(head: RequestHead, pathHost?: string): Routing {
  const hosts = valuesOf(head.rawHeaders, "host");
  // With two hosts, the edge could use one of them and the server in the sandbox the other.
  if (hosts.length > 1) return invalidTarget("Invalid host");
  const headers = {
    sandboxId: single(valuesOf(head.rawHeaders, "e2b-sandbox-id")),
    port: single(valuesOf(head.rawHeaders, "e2b-sandbox-port")),
  };
  if (pathHost !== undefined && hostNameOf(hosts[0] ?? "") === pathHost) {
    if (headers.sandboxId !== undefined || headers.port !== undefined) return invalidTarget("This host takes no routing headers");
    return routeByPath(head, hosts[0]);
  }
  const parsed = parseTarget(hosts[0], headers);
  switch (parsed.kind) {
    case "invalid":
      return invalidTarget(parsed.message);
    case "unnamed":
      return routeBySignature(head, hosts[0], parsed.message);
    case "target":
      return routeToTarget(head, hosts[0], parsed.target);
  }
}

function routeToTarget(head: RequestHead, host: string | undefined, target: Target): Routing {
  const message = messageOf(head, host);
  if (message.kind === "refused") return message;
  if (isReservedPath(target, message.path)) {
    return { ...refused(reservedPath(message.path.split("?", 1)[0] ?? message.path)), trace: "path reserved", named: target };
  }
  // The agent has a token of its own, and no link opens its port.
  const { link, path } = target.port === AGENT_PORT ? { path: message.path } : readLink(head.rawHeaders, message.path);
  return { kind: "routed", target, prefix: "", path, framing: message.framing, link };
}

/** The agent is not reached by path: browsers would keep its responses and those of servers apart by nothing but a policy. */
function routeByPath(head: RequestHead, host: string | undefined): Routing {
  const message = messageOf(head, host);
  if (message.kind === "refused") return message;
  const parsed = parsePathTarget(message.path);
  switch (parsed.kind) {
    case "invalid":
      return invalidTarget(parsed.message);
    case "unslashed":
      return refused({ kind: "empty", status: 308, headers: ["Location", parsed.slashed, "Content-Length", "0"] });
    case "target": {
      const { target, prefix } = parsed;
      if (target.port === AGENT_PORT) {
        return { ...refused(badRequest("The port of the agent is not served by path")), trace: "agent by path", named: target };
      }
      return { kind: "routed", target, prefix, framing: message.framing, ...readLink(head.rawHeaders, parsed.path) };
    }
  }
}

/** Refuses the request with the given text if its URL has no signature. */
function routeBySignature(head: RequestHead, host: string | undefined, text: string): Routing {
  const url = readSignedUrl(head.method, originForm(head.url, host) ?? "");
  switch (url.kind) {
    case "other":
      return refused(badRequest(text));
    case "other_method":
      return refused(answerToOtherMethod(head));
    case "malformed":
      return { ...refused(invalidSignature()), trace: "signature invalid" };
    case "signed": {
      const message = messageOf(head, host);
      return message.kind === "refused" ? message : { ...message, kind: "signed", file: url.file };
    }
  }
}

type Message = { readonly kind: "message"; readonly path: string; readonly framing: Framing };

/** Reads the path and the framing of a request. */
export function messageOf(
  head: Pick<RequestHead, "url" | "rawHeaders">,
  host: string | undefined,
): Message | Extract<Routing, { kind: "refused" }> {
  const path = originForm(head.url, host);
  if (path === undefined) return invalidTarget("Invalid request target");
  const framing = framingOf(head.rawHeaders);
  if (framing === undefined) return refused({ kind: "text", status: 501, text: "Unsupported transfer coding" });
  return { kind: "message", path, framing };
}

/**
 * Answers as the agent does, without looking up a sandbox. Browsers send a preflight before an upload with progress events, or with
 * another type than a form's.
 */
function answerToOtherMethod({ method, rawHeaders }: RequestHead): Refusal {
  const [requestedMethod] = valuesOf(rawHeaders, "access-control-request-method");
  const isPreflight = method === "OPTIONS" && requestedMethod !== undefined && valuesOf(rawHeaders, "origin").length > 0;
  if (!isPreflight) return methodNotAllowed(["GET", "POST"]);
  return preflightAnswer(["GET", "POST"], valuesOf(rawHeaders, "access-control-request-headers"));
}

function invalidTarget(text: string): Extract<Routing, { kind: "refused" }> {
  return { ...refused(badRequest(text)), trace: "target invalid" };
}

function refused(refusal: Refusal): { readonly kind: "refused"; readonly refusal: Refusal } {
  return { kind: "refused", refusal };
}

/** Joins repeated routing fields to a value that the parser rejects. */
function single(values: readonly string[]): string | undefined {
  return values.length === 0 ? undefined : values.join(",");
}

/** Returns `/path?query` or `*`. Accepts an absolute URL only if its host equals the Host field. */
function originForm(url: string, host: string | undefined): string | undefined {
  if (url.startsWith("/") || url === "*") return url;
  const match = ABSOLUTE_FORM.exec(url);
  if (!match || match[1]?.toLowerCase() !== host?.toLowerCase()) return undefined;
  const rest = match[2] ?? "";
  return rest.startsWith("/") ? rest : `/${rest}`;
}

/** Returns undefined for a transfer coding other than `chunked`. The HTTP parser rejects messages with both a length and a coding. */
export function framingOf(rawHeaders: RawHeaders): Framing | undefined {
  const codings = listOf(rawHeaders, "transfer-encoding");
  if (codings.length > 0) return codings.length === 1 && codings[0] === "chunked" ? "chunked" : undefined;
  return valuesOf(rawHeaders, "content-length").length > 0 ? "length" : "none";
}
