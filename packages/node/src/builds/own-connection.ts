import { Agent } from "node:http";

/**
 * A connection for one request, which the caller destroys: the address may belong to another sandbox later. It is kept alive until then, because
 * a server that refuses a request before it has read it would reset a connection that is to be closed, and its answer would be lost.
 */
export function ownConnection(): Agent {
  return new Agent({ keepAlive: true, maxSockets: 1 });
}
