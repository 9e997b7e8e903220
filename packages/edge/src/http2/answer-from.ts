import type { IncomingMessage } from "node:http";
import { asError } from "@skerry/base";
import { responseHeaders } from "../forwarding/headers.ts";
import { responseForPath } from "../forwarding/path-form.ts";
import { isBodiless, statusLine } from "../forwarding/status-line.ts";
import { framingOf } from "../routing/route-request.ts";
import type { StreamExchange } from "./stream-exchange.ts";
import { streamFields } from "./stream-fields.ts";

export interface StreamAnswer {
  readonly fields: string[];
  readonly isBodiless: boolean;
  readonly hasTrailers: boolean;
}

/** Returns the head of a server's response for the client, or an error for one that cannot be forwarded. */
export function answerFrom({ head, prefix = "", maskedHost }: StreamExchange, incoming: IncomingMessage): StreamAnswer | Error {
  const framing = framingOf(incoming.rawHeaders);
  if (framing === undefined) return new Error("the response has an unsupported transfer coding");
  try {
    const { status } = statusLine(incoming);
    // HTTP/2 has no status of three digits above 599 that clients know, and reserves those below 200 for other frames.
    if (status < 200 || status > 599) return new Error(`the response has the status ${status}`);
    const host = maskedHost ?? head.rawHeaders[1];
    const isWithoutBody = head.method === "HEAD" || isBodiless(status);
    const headers = responseForPath(responseHeaders(incoming.rawHeaders, isWithoutBody ? "none" : framing), { prefix, host });
    return {
      fields: [":status", String(status), ...streamFields(headers)],
      isBodiless: isWithoutBody,
      hasTrailers: framing === "chunked" && !isWithoutBody,
    };
  } catch (error) {
    return asError(error);
  }
}
