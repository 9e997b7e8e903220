// Rules that all server-streaming calls (Start, Connect, WatchDir) share: deadline, cancellation, keep-alive.

import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";

const DEFAULT_KEEPALIVE_SECONDS = 90;
/** Upper bound of what a client may ask for. It keeps the interval below the longest delay of a timer, 24.8 days. */
const MAX_KEEPALIVE_SECONDS = 24 * 60 * 60;

/** Throws the deadline error when the client's timeout was zero or negative from the start. */
export function assertTimeLeft(context: HandlerContext): void {
  const timeoutMs = context.timeoutMs();
  if (timeoutMs !== undefined && timeoutMs <= 0) throw deadlineError();
}

/** The interval in milliseconds. The client sends whole seconds; any other value, and zero, selects the default. */
export function keepaliveMs(context: HandlerContext): number {
  const header = context.requestHeader.get("Keepalive-Ping-Interval") ?? "";
  const seconds = /^\d{1,9}$/.test(header) ? Number(header) : 0;
  return Math.min(seconds > 0 ? seconds : DEFAULT_KEEPALIVE_SECONDS, MAX_KEEPALIVE_SECONDS) * 1000;
}

export function deadlineError(): ConnectError {
  return new ConnectError("context deadline exceeded", Code.DeadlineExceeded);
}

/** Why the signal of a call was aborted: its deadline passed, or the client cancelled it. */
export function abortError(signal: AbortSignal): ConnectError {
  const isDeadline = signal.reason instanceof ConnectError && signal.reason.code === Code.DeadlineExceeded;
  return isDeadline ? deadlineError() : new ConnectError("context canceled", Code.Canceled);
}

/** Calls `onAbort` when the call is aborted, or at once if it already was. Dispose of the result when the stream ends. */
export function whenAborted({ signal }: HandlerContext, onAbort: (error: ConnectError) => void): Disposable {
  const listener = () => onAbort(abortError(signal));
  signal.addEventListener("abort", listener);
  if (signal.aborted) listener();
  return { [Symbol.dispose]: () => signal.removeEventListener("abort", listener) };
}
