// Closes the connections of a server that stops. Node.js's `closeAllConnections` does not know tunnels and upgraded connections, so
// `close` would wait until these end by themselves.

import type { Server, Socket } from "node:net";

/**
 * Call before the server listens. The returned function stops the server from accepting and resets all open connections, including tunnels.
 * `reset` is for connections that are not TCP sockets.
 */
export function endingConnections(
  server: Server,
  reset: (socket: Socket) => void = (socket) => socket.resetAndDestroy(),
): () => Promise<void> {
  const open = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
  });
  return () =>
    new Promise((resolve) => {
      server.close(() => resolve());
      for (const socket of open) reset(socket);
    });
}
