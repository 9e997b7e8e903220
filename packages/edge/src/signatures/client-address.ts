import type { IncomingMessage } from "node:http";
import proxyAddr from "@fastify/proxy-addr";

/**
 * Returns a function that determines the client address of a request: the peer of the connection or, behind trusted proxies, the
 * last address in `X-Forwarded-For` that is not a trusted proxy. Throws for a text that is neither an address nor a network.
 */
export function clientAddresses(trustedProxies: readonly string[]): (req: IncomingMessage) => string {
  const trusts = trustedProxies.length === 0 ? () => false : proxyAddr.compile([...trustedProxies]);
  // A closed connection has no address.
  return (req) => (req.socket.remoteAddress === undefined ? "" : proxyAddr(req, trusts));
}
