import type { Duplex } from "node:stream";
import { reset } from "../connections/reset.ts";

/**
 * Joins two streams until both directions have ended. The end of one direction is forwarded as a half-close. An error on one side
 * resets the other.
 */
export function splice(left: Duplex, right: Duplex): void {
  joinOneWay(left, right);
  joinOneWay(right, left);
}

function joinOneWay(from: Duplex, to: Duplex): void {
  // pipe() forwards data, backpressure and the end, but not errors.
  from.pipe(to);
  from.on("error", () => reset(to));
  from.once("close", () => {
    if (!from.readableEnded) reset(to);
    else if (!from.writableFinished && !to.destroyed) to.destroy();
  });
}
