import { type IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";

/**
 * A response for a connection that Node's server has let go of (an upgrade that was refused, a CONNECT).
 * It is the last thing on that connection.
 */
export function responseOn(req: IncomingMessage, client: Duplex): ServerResponse {
  const res = new ServerResponse(req);
  res.shouldKeepAlive = false;
  res.on("error", () => {});
  // ServerResponse is typed for net.Socket but uses no more than a Duplex here.
  res.assignSocket(client as Parameters<ServerResponse["assignSocket"]>[0]);
  // Node's server would wire these two.
  client.on("drain", () => res.emit("drain"));
  res.once("finish", () => {
    // Read what the client still sends, so that closing does not reset the connection under the answer.
    client.resume();
    client.end();
  });
  return res;
}
