import type { HandlerContext } from "@connectrpc/connect";
import { keepaliveMs, whenAborted } from "../server-stream.ts";
import type { GuestProcess } from "./running/guest-process.ts";
import type { ProcessEvent, Subscriber } from "./running/subscriber.ts";

/** The response stream of Start and Connect: `start`, then the process's events, and `keepalive` while there are none. */
export async function* follow(
  process: GuestProcess,
  subscriber: Subscriber,
  context: HandlerContext,
): AsyncGenerator<{ event: { event: ProcessEvent } }> {
  const idleMs = keepaliveMs(context);
  using _ = whenAborted(context, (error) => subscriber.fail(error));
  try {
    yield wrap({ case: "start", value: { pid: process.pid } });
    for (;;) {
      const event = await subscriber.next(idleMs);
      if (event === undefined) return;
      yield wrap(event === "idle" ? { case: "keepalive", value: {} } : event);
    }
  } finally {
    process.unsubscribe(subscriber);
  }
}

function wrap(event: ProcessEvent): { event: { event: ProcessEvent } } {
  return { event: { event } };
}
