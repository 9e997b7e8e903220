// How a server that was told to stop ends what is still connected. Node.js's own `closeAllConnections` knows nothing of tunnels
// and upgraded connections, for which `close` then waits as long as they last.

import type { Server, Socket } from "node:net";

/** For a server that does not listen yet. The answer takes no more connections and resets all that are open, tunnels too. */
export function endingConnections(server: Server): () => Promise<void> {
  const open = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
  });
  return () =>
    new Promise((resolve) => {
      server.close(() => resolve());
      for (const socket of open) socket.resetAndDestroy();
    });
}
