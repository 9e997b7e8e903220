// From the head of a request to the port of a sandbox that it is for. Pure: no lookup happens here.

import { parseTarget, type Target } from "@skerry/wire";
import { badRequest, type Refusal, reservedPath } from "../answers/refusal.ts";
import { type Framing, listOf, type RawHeaders, valuesOf } from "../forwarding/headers.ts";
import { isReservedPath } from "./reserved-path.ts";

export interface RequestHead {
  readonly method: string;
  /** The request target as it stood in the request line. */
  readonly url: string;
  readonly rawHeaders: RawHeaders;
}

export type Routing =
  | { readonly kind: "routed"; readonly target: Target; readonly path: string; readonly framing: Framing }
  | { readonly kind: "refused"; readonly refusal: Refusal };

const ABSOLUTE_FORM = /^https?:\/\/([^/?#]*)(.*)$/i;

/** The checks that need nothing but the request itself, in the order in which clients see them fail. */
export function routeRequest(head: RequestHead): Routing {
  const hosts = valuesOf(head.rawHeaders, "host");
  // Two hosts: we would route by one and the server in the sandbox might believe the other.
  if (hosts.length > 1) return refused(badRequest("Invalid host"));
  const parsed = parseTarget(hosts[0], {
    sandboxId: single(valuesOf(head.rawHeaders, "e2b-sandbox-id")),
    port: single(valuesOf(head.rawHeaders, "e2b-sandbox-port")),
  });
  if (parsed.kind === "invalid") return refused(badRequest(parsed.message));
  const path = originForm(head.url, hosts[0]);
  if (path === undefined) return refused(badRequest("Invalid request target"));
  const framing = framingOf(head.rawHeaders);
  if (framing === undefined) return refused({ kind: "text", status: 501, text: "Unsupported transfer coding" });
  if (isReservedPath(parsed.target, path)) return refused(reservedPath(path.split("?", 1)[0] ?? path));
  return { kind: "routed", target: parsed.target, path, framing };
}

function refused(refusal: Refusal): Routing {
  return { kind: "refused", refusal };
}

/** Repeated routing fields become one value that no parser accepts. */
function single(values: readonly string[]): string | undefined {
  return values.length === 0 ? undefined : values.join(",");
}

/** `/path?query` or `*`. A full URL is taken only when it names the same host as the Host field. */
function originForm(url: string, host: string | undefined): string | undefined {
  if (url.startsWith("/") || url === "*") return url;
  const match = ABSOLUTE_FORM.exec(url);
  if (!match || match[1]?.toLowerCase() !== host?.toLowerCase()) return undefined;
  const rest = match[2] ?? "";
  return rest.startsWith("/") ? rest : `/${rest}`;
}

/** Undefined for a transfer coding other than plain `chunked`. Conflicts of length and coding never get past the HTTP parser. */
export function framingOf(rawHeaders: RawHeaders): Framing | undefined {
  const codings = listOf(rawHeaders, "transfer-encoding");
  if (codings.length > 0) return codings.length === 1 && codings[0] === "chunked" ? "chunked" : undefined;
  return valuesOf(rawHeaders, "content-length").length > 0 ? "length" : "none";
}
