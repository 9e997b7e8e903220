// The head of an HTTP/2 request as the edge would have received it over HTTP/1.1, so that all checks behind it are the same.
//
// The HTTP/2 library refuses most of what is refused here. A field that got past both would become a second request in the sandbox, so the
// edge does not rely on the library.

import { randomBytes } from "node:crypto";
import { METHODS } from "node:http";
import { badRequest, type Refusal } from "../answers/refusal.ts";
import { fields, type RawHeaders } from "../forwarding/headers.ts";

export interface StreamHead {
  /** `GET` for a WebSocket. */
  readonly method: string;
  readonly url: string;
  /** With a Host, and with the framing of the body. */
  readonly rawHeaders: RawHeaders;
  /** The key of the handshake with the server in the sandbox. Present for a WebSocket (RFC 8441). */
  readonly webSocketKey?: string;
}

export type HeadResult = { readonly kind: "head"; readonly head: StreamHead } | { readonly kind: "refused"; readonly refusal: Refusal };

const NAME = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;
/** Control characters, with which a field could end its line. A tab is permitted. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what a field must not contain.
const NOT_IN_VALUE = /[\x00-\x08\x0a-\x1f\x7f]/;
const PATH = /^(?:\/[\x21-\x7e\x80-\xff]*|\*)$/;
const AUTHORITY = /^[A-Za-z0-9._~!$&'()*+,;=:[\]%-]+$/;
const LENGTH = /^\d{1,16}$/;

/** Fields that describe an HTTP/1.1 connection (RFC 9113, 8.2.2). */
const CONNECTION_SPECIFIC: ReadonlySet<string> = new Set(["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"]);

interface Sorted {
  readonly pseudo: ReadonlyMap<string, string>;
  readonly regular: string[];
  readonly hosts: readonly string[];
  readonly cookies: readonly string[];
  readonly lengths: readonly string[];
}

/** Bytes that a field counts beside its own (RFC 9113, 6.5.2). */
const FIELD_BYTES = 32;

export interface HeadLimits {
  /** The request has no body. */
  readonly isWhole: boolean;
  readonly maxHeaderBytes: number;
}

export function streamHead(raw: RawHeaders, { isWhole, maxHeaderBytes }: HeadLimits): HeadResult {
  // The library has the same limit, and enforces it only against clients that confirm its settings.
  const bytes = raw.reduce((sum, text) => sum + text.length + FIELD_BYTES / 2, 0);
  if (bytes > maxHeaderBytes) return refused({ kind: "text", status: 431, text: "Request header fields too large" });
  const sorted = sort(raw);
  if (sorted === undefined) return refused(badRequest("Invalid header field"));
  const { pseudo, hosts, lengths } = sorted;
  const method = pseudo.get(":method") ?? "";
  const protocol = pseudo.get(":protocol");
  if (method === "CONNECT" && protocol === undefined) return refused({ kind: "text", status: 405, text: "Method not allowed" });
  if (!METHODS.includes(method) || (protocol !== undefined && method !== "CONNECT")) return refused(badRequest("Invalid method"));
  if (protocol !== undefined && protocol !== "websocket") {
    return refused({ kind: "text", status: 501, text: "Unsupported protocol" });
  }
  const url = pseudo.get(":path") ?? "";
  if (!PATH.test(url) || !/^https?$/.test(pseudo.get(":scheme") ?? "")) return refused(badRequest("Invalid request target"));
  const host = hostOf(pseudo.get(":authority"), hosts);
  if (host === undefined) return refused(badRequest("Invalid host"));
  if (lengths.length > 1 || !lengths.every((value) => LENGTH.test(value)) || (isWhole && lengths.some((value) => Number(value) > 0))) {
    return refused(badRequest("Invalid content length"));
  }
  if (protocol === undefined) return { kind: "head", head: { method, url, rawHeaders: asHttp1(sorted, { host, isWhole }) } };
  if (lengths.length > 0) return refused(badRequest("Invalid content length"));
  const key = randomBytes(16).toString("base64");
  const handshake = ["Upgrade", "websocket", "Connection", "Upgrade", "Sec-WebSocket-Key", key];
  const rawHeaders = [...asHttp1(sorted, { host, isWhole: true }), ...handshake];
  return { kind: "head", head: { method: "GET", url, rawHeaders, webSocketKey: key } };
}

/** Returns undefined for fields that HTTP/2 forbids. */
function sort(raw: RawHeaders): Sorted | undefined {
  const pseudo = new Map<string, string>();
  const sorted = { pseudo, regular: [] as string[], hosts: [] as string[], cookies: [] as string[], lengths: [] as string[] };
  for (const [name, , value] of fields(raw)) {
    if (NOT_IN_VALUE.test(value)) return undefined;
    if (name.startsWith(":")) {
      if (pseudo.has(name)) return undefined;
      pseudo.set(name, value);
    } else if (!NAME.test(name) || CONNECTION_SPECIFIC.has(name) || (name === "te" && value.trim().toLowerCase() !== "trailers")) {
      return undefined;
    } else if (name === "host") sorted.hosts.push(value);
    else if (name === "cookie") sorted.cookies.push(value);
    else if (name === "content-length") sorted.lengths.push(value);
    // The edge writes the key of a WebSocket's handshake itself.
    else if (name !== "sec-websocket-key" || !raw.includes(":protocol")) sorted.regular.push(name, value);
  }
  return sorted;
}

/** With two names, the edge could use one of them and the server in the sandbox the other. */
function hostOf(authority: string | undefined, hosts: readonly string[]): string | undefined {
  const names = new Set([...(authority === undefined ? [] : [authority]), ...hosts].map((name) => name.toLowerCase()));
  const name = authority ?? hosts[0];
  return names.size === 1 && hosts.length <= 1 && name !== undefined && AUTHORITY.test(name) ? name : undefined;
}

function asHttp1({ regular, cookies, lengths }: Sorted, { host, isWhole }: { host: string; isWhole: boolean }): string[] {
  const out = ["Host", host, ...regular];
  // HTTP/2 may divide a cookie field, and HTTP/1.1 permits one only (RFC 9113, 8.2.3).
  if (cookies.length > 0) out.push("cookie", cookies.join("; "));
  if (isWhole) return out;
  const [length] = lengths;
  if (length === undefined) out.push("transfer-encoding", "chunked");
  else out.push("content-length", length);
  return out;
}

function refused(refusal: Refusal): HeadResult {
  return { kind: "refused", refusal };
}
