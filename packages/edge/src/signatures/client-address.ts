import type { IncomingMessage } from "node:http";
import { TLSSocket } from "node:tls";
import proxyAddr from "@fastify/proxy-addr";

/** What tells who sent a request. */
export type Sender = Pick<IncomingMessage, "socket" | "headers">;

/**
 * Returns a function that determines the client address of a request: the peer of the connection or, behind trusted proxies, the
 * last address in `X-Forwarded-For` that is not a trusted proxy. Throws for a text that is neither an address nor a network.
 */
export function clientAddresses(trustedProxies: readonly string[]): (req: Sender) => string {
  const trusts = trustIn(trustedProxies);
  // A closed connection has no address.
  return (req) => (req.socket.remoteAddress === undefined ? "" : proxyAddr(req as IncomingMessage, trusts));
}

/** Returns a function that tells whether the client of a request uses TLS: to the edge itself, or to a trusted proxy in front of it. */
export function secureClients(trustedProxies: readonly string[]): (req: Sender) => boolean {
  const trusts = trustIn(trustedProxies);
  return ({ socket, headers }) => {
    if (socket instanceof TLSSocket) return true;
    if (socket.remoteAddress === undefined || !trusts(socket.remoteAddress, 0)) return false;
    return (
      String(headers["x-forwarded-proto"] ?? "")
        .split(",")
        .at(-1)
        ?.trim()
        .toLowerCase() === "https"
    );
  };
}

function trustIn(trustedProxies: readonly string[]): (address: string, index: number) => boolean {
  return trustedProxies.length === 0 ? () => false : proxyAddr.compile([...trustedProxies]);
}
