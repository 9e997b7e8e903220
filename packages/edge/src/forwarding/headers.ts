// How the edge rewrites header fields. It keeps them in Node's raw list (name, value, name, value, …), which preserves duplicates,
// their order and the case of the names.

import { LINK_COOKIE, LINK_TOKEN_FIELD } from "@skerry/wire";

/** Fields that the edge does not forward, with the reason. It writes new framing and connection fields for the next hop. */
export const HOP_BY_HOP: ReadonlyMap<string, string> = new Map([
  ["connection", "describes one connection (RFC 9110, 7.6.1)"],
  ["keep-alive", "describes one connection"],
  ["proxy-connection", "a non-standard variant of Connection"],
  ["proxy-authenticate", "between a client and its proxy"],
  ["proxy-authorization", "between a client and its proxy"],
  ["te", "describes this peer; only `trailers` is forwarded"],
  ["transfer-encoding", "framing: rewritten for a chunked body"],
  ["upgrade", "forwarded only with an upgrade"],
]);

/** Fields in which proxies describe a client. The edge drops those of clients, because they can be forged, and adds none. */
export const FORWARDING: ReadonlyMap<string, string> = new Map([
  ["forwarded", "RFC 7239"],
  ["x-forwarded-for", "client address"],
  ["x-forwarded-host", "host before a proxy"],
  ["x-forwarded-port", "port before a proxy"],
  ["x-forwarded-prefix", "path before a proxy"],
  ["x-forwarded-proto", "scheme before a proxy"],
  ["x-forwarded-server", "name of a proxy"],
]);

/** The credential for the edge itself. The server in the sandbox never sees it, or any client could get others' tokens by its own server. */
export const TRAFFIC_TOKEN_FIELD = "e2b-traffic-access-token";

/** Fields that `Connection` cannot remove, because routing, framing or credentials depend on them. */
const NOT_NOMINABLE: ReadonlySet<string> = new Set(["host", "content-length", "trailer", "expect", "authorization", "x-access-token"]);

/** Credentials for the edge itself. A link's is in a cookie as well. */
const OURS: ReadonlySet<string> = new Set([TRAFFIC_TOKEN_FIELD, LINK_TOKEN_FIELD]);

export type RawHeaders = readonly string[];

/** How the body of a message is delimited. */
export type Framing = "none" | "length" | "chunked" | "close";

export function* fields(raw: RawHeaders): Generator<readonly [name: string, lower: string, value: string]> {
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = raw[at] as string;
    yield [name, name.toLowerCase(), raw[at + 1] as string];
  }
}

export function valuesOf(raw: RawHeaders, lowerName: string): string[] {
  const values: string[] = [];
  for (const [, lower, value] of fields(raw)) if (lower === lowerName) values.push(value);
  return values;
}

export function listOf(raw: RawHeaders, lowerName: string): string[] {
  return valuesOf(raw, lowerName)
    .flatMap((value) => value.split(","))
    .map((item) => item.trim().toLowerCase())
    .filter((item) => item !== "");
}

export interface RequestRewrite {
  readonly framing: Framing;
  readonly upgrade: boolean;
  /** Replaces the Host, which then becomes `X-Forwarded-Host`. */
  readonly maskedHost?: string | undefined;
  /** Sent as `X-Forwarded-Prefix`, unless it is empty. */
  readonly prefix?: string | undefined;
  /** The server may keep the connection for another request. */
  readonly keepAlive?: boolean;
}

/** Returns the fields for the server in the sandbox. Without `upgrade` and `keepAlive`, the connection closes after the request. */
export function requestHeaders(
  raw: RawHeaders,
  { framing, upgrade, maskedHost, prefix = "", keepAlive = false }: RequestRewrite,
): string[] {
  const takesTrailers = listOf(raw, "te").includes("trailers");
  const isOurs = (lower: string) => FORWARDING.has(lower) || OURS.has(lower) || (lower === "host" && maskedHost !== undefined);
  const out = withoutLinkCookies(endToEnd(raw, (lower) => isOurs(lower) || (lower === "trailer" && framing !== "chunked")));
  if (maskedHost !== undefined) {
    out.unshift("Host", maskedHost);
    for (const value of valuesOf(raw, "host")) out.push("X-Forwarded-Host", value);
  }
  if (prefix !== "") out.push("X-Forwarded-Prefix", prefix);
  if (upgrade) {
    for (const value of valuesOf(raw, "upgrade")) out.push("Upgrade", value);
    out.push("Connection", "Upgrade");
    return out;
  }
  if (takesTrailers) out.push("TE", "trailers");
  if (framing === "chunked") out.push("Transfer-Encoding", "chunked");
  const connection = keepAlive ? "keep-alive" : "close";
  out.push("Connection", takesTrailers ? `${connection}, TE` : connection);
  return out;
}

/** Returns the fields for the client. The HTTP server adds those that concern the client's connection. */
export function responseHeaders(raw: RawHeaders, framing: Framing): string[] {
  const out = withHostOnlyCookies(endToEnd(raw, (lower) => lower === "trailer" && framing !== "chunked"));
  if (framing === "chunked") out.push("Transfer-Encoding", "chunked");
  return out;
}

/** Returns the fields of a 101: all end-to-end fields, and the negotiated protocol. */
export function upgradeResponseHeaders(raw: RawHeaders): string[] {
  const out = ["Connection", "Upgrade"];
  for (const value of valuesOf(raw, "upgrade")) out.push("Upgrade", value);
  out.push(...withHostOnlyCookies(endToEnd(raw, () => false)));
  return out;
}

/**
 * Removes `Domain` from cookies, so that a browser returns them only to the host that set them, and not to other sandboxes. Removes
 * cookies with the name of the edge's own.
 */
function withHostOnlyCookies(raw: RawHeaders): string[] {
  return [...fields(raw)].flatMap(([name, lower, value]) => {
    if (lower !== "set-cookie") return [name, value];
    return isLinkCookie(value.split(";", 1)[0] ?? "") ? [] : [name, hostOnly(value)];
  });
}

/** Removes the link's token from cookies. The other cookies of a field are as they were. */
function withoutLinkCookies(raw: RawHeaders): string[] {
  return [...fields(raw)].flatMap(([name, lower, value]) => {
    if (lower !== "cookie" || !value.includes(LINK_COOKIE)) return [name, value];
    const rest = value.split(";").filter((pair) => !isLinkCookie(pair));
    return rest.length === 0 ? [] : [name, rest.join(";").trimStart()];
  });
}

/** Takes `name=value` or a bare name. */
function isLinkCookie(pair: string): boolean {
  return pair.split("=", 1)[0]?.trim() === LINK_COOKIE;
}

function hostOnly(cookie: string): string {
  const [pair = "", ...attributes] = cookie.split(";");
  const isDomain = (attribute: string) => attribute.split("=", 1)[0]?.trim().toLowerCase() === "domain";
  return [pair, ...attributes.filter((attribute) => !isDomain(attribute))].join(";");
}

/** Fields that have a meaning for the edge or for browsers, which trailers must not repeat. */
const NOT_IN_TRAILERS: ReadonlySet<string> = new Set([...OURS, "cookie", "set-cookie"]);

/** Returns the trailer fields to forward, without those that concern framing, routing, credentials or the connection. */
export function trailerFields(raw: RawHeaders): [string, string][] {
  const out: [string, string][] = [];
  for (const [name, lower, value] of fields(raw)) {
    const isKept = !HOP_BY_HOP.has(lower) && !FORWARDING.has(lower) && !NOT_NOMINABLE.has(lower) && !NOT_IN_TRAILERS.has(lower);
    if (isKept) out.push([name, value]);
  }
  return out;
}

function endToEnd(raw: RawHeaders, drops: (lower: string) => boolean): string[] {
  const nominated = new Set(listOf(raw, "connection").filter((name) => !NOT_NOMINABLE.has(name)));
  const out: string[] = [];
  for (const [name, lower, value] of fields(raw)) {
    if (!HOP_BY_HOP.has(lower) && !nominated.has(lower) && !drops(lower)) out.push(name, value);
  }
  return out;
}
