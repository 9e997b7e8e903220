// Which host a request is for.

import type { IncomingMessage } from "node:http";
import { hostName } from "./names.ts";

/** `name` is undefined when the request has no Host, or an address in its place. */
export type HttpTarget = { readonly name: string | undefined } | { readonly reason: "bad_request" };

const HOST = /^([^\s:@/?#]*)(?::\d{1,5})?$/;

/** Only requests to a server itself have a target: those to a proxy name a second host. */
export function targetOf({ method, url = "", rawHeaders, httpVersion }: IncomingMessage): HttpTarget {
  const isPath = url.startsWith("/") || (url === "*" && method === "OPTIONS");
  const hosts = rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === "host");
  if (!isPath || hosts.length > 1) return { reason: "bad_request" };
  const [host] = hosts;
  if (host === undefined) return httpVersion === "1.1" ? { reason: "bad_request" } : { name: undefined };
  const match = HOST.exec(host);
  return match ? { name: hostName(match[1] ?? "") } : { reason: "bad_request" };
}
