import { fields, type RawHeaders } from "../forwarding/headers.ts";

/** Fields of HTTP/1.1 that HTTP/2 replaces. */
const REPLACED: ReadonlySet<string> = new Set(["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"]);

/** Returns fields of an HTTP/1.1 response as HTTP/2 writes them: in lower case, and without those about the connection. */
export function streamFields(raw: RawHeaders): string[] {
  const out: string[] = [];
  for (const [, lower, value] of fields(raw)) if (!REPLACED.has(lower)) out.push(lower, value);
  return out;
}
