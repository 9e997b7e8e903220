import type { Socket } from "node:net";
import { pipeline } from "node:stream";

/** Moves bytes both ways, as fast as the slower side takes them. When one side breaks, the other is reset. */
export function join(one: Socket, other: Socket): void {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    pipeline(from, to, (error) => {
      if (error) for (const socket of [one, other]) socket.resetAndDestroy();
    });
  }
}
