import { type IncomingMessage, STATUS_CODES } from "node:http";

export interface StatusLine {
  readonly status: number;
  readonly reason: string;
}

/** Characters that Node's writer rejects in a reason phrase, although its parser accepts all but line breaks. */
const NOT_IN_REASON = /[^\t\x20-\x7e\x80-\xff]/;

/** Returns the status line to forward. Throws if the status is out of range. */
export function statusLine(answer: IncomingMessage): StatusLine {
  const status = answer.statusCode ?? 0;
  if (status < 100 || status > 999) throw new Error(`the response has the invalid status ${status}`);
  const reason = answer.statusMessage ?? "";
  return { status, reason: NOT_IN_REASON.test(reason) ? (STATUS_CODES[status] ?? "") : reason };
}

/** Returns whether responses with this status have no body, whatever their fields say. */
export function isBodiless(status: number): boolean {
  return status === 204 || status === 304;
}
