import { type IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";

/**
 * Creates a response on a connection that Node's server has detached: a refused upgrade, or a CONNECT.
 * The connection closes after the response.
 */
export function responseOn(req: IncomingMessage, client: Duplex): ServerResponse {
  const res = new ServerResponse(req);
  res.shouldKeepAlive = false;
  res.on("error", () => {});
  // ServerResponse is typed for net.Socket but uses no more than a Duplex here.
  res.assignSocket(client as Parameters<ServerResponse["assignSocket"]>[0]);
  // Node's server does this for its own responses.
  client.on("drain", () => res.emit("drain"));
  res.once("finish", () => {
    // Unread data would turn the close into a reset, and the client could lose the response.
    client.resume();
    client.end();
  });
  return res;
}
