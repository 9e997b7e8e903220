import { type ClientRequest, request as httpRequest } from "node:http";
import type { Duplex } from "node:stream";
import { type Framing, type RawHeaders, requestHeaders } from "./headers.ts";

export interface OutgoingHead {
  readonly method: string;
  readonly path: string;
  /** As of the client. */
  readonly rawHeaders: RawHeaders;
  readonly framing: Framing;
  readonly isUpgrade?: boolean;
  /** An open connection to the server. Without `keepAlive`, it carries this request alone. */
  readonly upstream: Duplex;
  readonly keepAlive?: boolean;
  /** Replaces the Host of the request. */
  readonly maskedHost?: string | undefined;
  /** What precedes the path in the client's address. */
  readonly prefix?: string | undefined;
  readonly maxHeaderBytes: number;
  /** Fields that are added to the request. */
  readonly extraHeaders?: readonly string[] | undefined;
}

/** Methods whose requests need `Content-Length: 0` when they have no body (RFC 9110, 8.6). */
const BODY_IS_USUAL: ReadonlySet<string> = new Set(["POST", "PUT", "PATCH"]);

/** Starts the request to the server in the sandbox. */
export function sendHead(head: OutgoingHead): ClientRequest {
  const { method, path, rawHeaders, framing, isUpgrade = false, keepAlive = false, upstream, maxHeaderBytes, extraHeaders = [] } = head;
  const { maskedHost, prefix } = head;
  const headers = [...requestHeaders(rawHeaders, { framing, upgrade: isUpgrade, maskedHost, prefix, keepAlive }), ...extraHeaders];
  if (!isUpgrade && framing === "none" && BODY_IS_USUAL.has(method)) headers.push("Content-Length", "0");
  const outgoing = httpRequest({
    createConnection: () => upstream,
    method,
    path,
    headers,
    setHost: false,
    maxHeaderSize: maxHeaderBytes,
  });
  outgoing.maxHeadersCount = 0;
  // Otherwise a request without an agent ends its connection.
  outgoing.shouldKeepAlive = keepAlive;
  return outgoing;
}
