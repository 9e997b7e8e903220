import type { ClientRequest } from "node:http";

/** For a request that the server answered before it had arrived whole. */
const LINGER_MS = 500;

/**
 * Closes a sandbox's connection after a whole answer, whether or not the server there closes its end: otherwise programs in
 * sandboxes could keep as many of the edge's descriptors as they like. What was sent of the request still arrives.
 */
export function retire(outgoing: ClientRequest): void {
  if (outgoing.writableFinished || !outgoing.writableEnded) {
    outgoing.destroy();
    return;
  }
  const timer = setTimeout(() => outgoing.destroy(), LINGER_MS).unref();
  outgoing.once("finish", () => outgoing.destroy());
  outgoing.once("close", () => clearTimeout(timer));
}
