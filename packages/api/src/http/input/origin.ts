// The address of this API as a caller sees it, for links in the answer to that caller. A caller can claim any address, and gets a link with it
// that nobody else is given. So the headers need no proof. They must only not break out of the link.

import type { IncomingHttpHeaders } from "node:http";
import { validationError } from "../../errors.ts";

const HOST = /^(?:[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i;

/** `http://host:port`, as the caller or a proxy before this API wrote it. Throws when the request names no host. */
export function originOf(headers: IncomingHttpHeaders): string {
  const host = firstOf(headers["x-forwarded-host"]) ?? headers.host ?? "";
  if (!HOST.test(host)) throw validationError("header Host must name this API");
  const isSecure = firstOf(headers["x-forwarded-proto"])?.toLowerCase() === "https";
  return `${isSecure ? "https" : "http"}://${host}`;
}

/** Of several proxies, the first one wrote what the client asked for. */
function firstOf(header: string | string[] | undefined): string | undefined {
  const text = Array.isArray(header) ? header[0] : header;
  return text?.split(",")[0]?.trim();
}
