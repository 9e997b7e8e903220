// What happens to header fields on the way through. Fields travel as Node's raw list (name, value, name, value, …), so
// duplicates, their order and the case of the names stay as they were sent.

/** Fields that end at this hop, with the reason. Framing and connection fields are written anew for the next hop. */
export const HOP_BY_HOP: ReadonlyMap<string, string> = new Map([
  ["connection", "describes one connection (RFC 9110, 7.6.1)"],
  ["keep-alive", "describes one connection"],
  ["proxy-connection", "an old misspelling of Connection"],
  ["proxy-authenticate", "between a client and its proxy"],
  ["proxy-authorization", "between a client and its proxy"],
  ["te", "what this peer takes; `trailers` is the one part that is passed on"],
  ["transfer-encoding", "framing: written anew when a body is chunked"],
  ["upgrade", "passed on only for a request that is taken as an upgrade"],
]);

/** Fields with which a client could claim to be a proxy; the edge believes none and adds none. */
export const FORWARDING: ReadonlyMap<string, string> = new Map([
  ["forwarded", "RFC 7239"],
  ["x-forwarded-for", "client address"],
  ["x-forwarded-host", "host before a proxy"],
  ["x-forwarded-port", "port before a proxy"],
  ["x-forwarded-prefix", "path before a proxy"],
  ["x-forwarded-proto", "scheme before a proxy"],
  ["x-forwarded-server", "name of a proxy"],
]);

/** `Connection` may not name these away: routing, framing and credentials do not depend on a client's list. */
const NOT_NOMINABLE: ReadonlySet<string> = new Set(["host", "content-length", "trailer", "expect", "authorization", "x-access-token"]);

export type RawHeaders = readonly string[];

/** How a message's body is delimited on the next hop. */
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

/** The head for the sandbox's server. `upgrade` keeps the protocol change; otherwise the connection is for one request. */
export function requestHeaders(raw: RawHeaders, options: { framing: Framing; upgrade: boolean }): string[] {
  const takesTrailers = listOf(raw, "te").includes("trailers");
  const out = endToEnd(raw, (lower) => FORWARDING.has(lower) || (lower === "trailer" && options.framing !== "chunked"));
  if (options.upgrade) {
    for (const value of valuesOf(raw, "upgrade")) out.push("Upgrade", value);
    out.push("Connection", "Upgrade");
    return out;
  }
  if (takesTrailers) out.push("TE", "trailers");
  if (options.framing === "chunked") out.push("Transfer-Encoding", "chunked");
  out.push("Connection", takesTrailers ? "close, TE" : "close");
  return out;
}

/** The head for the client; how the client's connection goes on is left to the HTTP server. */
export function responseHeaders(raw: RawHeaders, framing: Framing): string[] {
  const out = endToEnd(raw, (lower) => lower === "trailer" && framing !== "chunked");
  if (framing === "chunked") out.push("Transfer-Encoding", "chunked");
  return out;
}

/** The head of a 101 answer: everything end-to-end, and the protocol that was agreed on. */
export function upgradeResponseHeaders(raw: RawHeaders): string[] {
  const out = ["Connection", "Upgrade"];
  for (const value of valuesOf(raw, "upgrade")) out.push("Upgrade", value);
  out.push(...endToEnd(raw, () => false));
  return out;
}

/** Trailer fields that may go on: none that would change framing, routing or the connection after the fact. */
export function trailerFields(raw: RawHeaders): [string, string][] {
  const out: [string, string][] = [];
  for (const [name, lower, value] of fields(raw)) {
    if (!HOP_BY_HOP.has(lower) && !FORWARDING.has(lower) && !NOT_NOMINABLE.has(lower)) out.push([name, value]);
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
