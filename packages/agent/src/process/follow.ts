import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import type { ProcessEvent } from "./running/event.ts";
import type { GuestProcess } from "./running/guest-process.ts";
import type { Subscriber } from "./running/subscriber.ts";

const DEFAULT_KEEPALIVE_SECONDS = 90;
const MAX_KEEPALIVE_SECONDS = 24 * 60 * 60;

/** The stream of a Start or Connect call: `start`, then what happens from now on, `keepalive` when nothing does. */
export async function* follow(
  process: GuestProcess,
  subscriber: Subscriber,
  context: HandlerContext,
): AsyncGenerator<{ event: { event: ProcessEvent } }> {
  const keepaliveMs = keepaliveInterval(context.requestHeader.get("Keepalive-Ping-Interval"));
  const onAbort = () => subscriber.fail(abortError(context.signal));
  context.signal.addEventListener("abort", onAbort);
  if (context.signal.aborted) onAbort();
  try {
    yield wrap({ case: "start", value: { pid: process.pid } });
    for (;;) {
      const event = await subscriber.next(keepaliveMs);
      if (event === undefined) return;
      yield wrap(event === "idle" ? { case: "keepalive", value: {} } : event);
    }
  } finally {
    context.signal.removeEventListener("abort", onAbort);
    process.unsubscribe(subscriber);
  }
}

/** Whole seconds, as clients send it; anything else, zero included, means the default. */
export function keepaliveInterval(header: string | null): number {
  const seconds = header !== null && /^\d{1,9}$/.test(header) ? Number(header) : 0;
  return Math.min(seconds > 0 ? seconds : DEFAULT_KEEPALIVE_SECONDS, MAX_KEEPALIVE_SECONDS) * 1000;
}

export function deadlineError(): ConnectError {
  return new ConnectError("context deadline exceeded", Code.DeadlineExceeded);
}

function abortError(signal: AbortSignal): ConnectError {
  const isDeadline = signal.reason instanceof ConnectError && signal.reason.code === Code.DeadlineExceeded;
  return isDeadline ? deadlineError() : new ConnectError("context canceled", Code.Canceled);
}

function wrap(event: ProcessEvent): { event: { event: ProcessEvent } } {
  return { event: { event } };
}
