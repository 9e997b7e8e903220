import type { Duplex } from "node:stream";
import { reset } from "../connections/reset.ts";

/**
 * Joins two streams until both directions have ended. An end in one direction is passed on as that end only
 * (a half-close); an error on either side resets the other.
 */
export function splice(left: Duplex, right: Duplex): void {
  joinOneWay(left, right);
  joinOneWay(right, left);
}

function joinOneWay(from: Duplex, to: Duplex): void {
  // pipe() passes on data, backpressure and the end, but not errors.
  from.pipe(to);
  from.on("error", () => reset(to));
  from.once("close", () => {
    if (!from.readableEnded) reset(to);
    else if (!from.writableFinished && !to.destroyed) to.destroy();
  });
}
