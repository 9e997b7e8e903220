import { type IncomingMessage, STATUS_CODES } from "node:http";

export interface StatusLine {
  readonly status: number;
  readonly reason: string;
}

/** What Node's writer refuses in a reason; its parser lets all but line ends through. */
const NOT_IN_REASON = /[^\t\x20-\x7e\x80-\xff]/;

/** The status line to send on for an answer. Throws for a status that is none. */
export function statusLine(answer: IncomingMessage): StatusLine {
  const status = answer.statusCode ?? 0;
  if (status < 100 || status > 999) throw new Error(`an answer with the status ${status}`);
  const reason = answer.statusMessage ?? "";
  return { status, reason: NOT_IN_REASON.test(reason) ? (STATUS_CODES[status] ?? "") : reason };
}

/** Answers that end with their head, whatever their fields say of a body. */
export function isBodiless(status: number): boolean {
  return status === 204 || status === 304;
}
