import type { ClientRequest } from "node:http";

/** How long the rest of a request may take that the server answered early. */
const LINGER_MS = 500;

/**
 * Closes the upstream connection after a complete response, even if the server keeps its side open. Otherwise programs in sandboxes
 * could exhaust the edge's descriptors. Request data that was already sent still arrives.
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
