// Nodes on one host choose different address pools by looking at its routes. A node without sandboxes has no routes yet, so it also holds an
// abstract socket that is named after its pool. The kernel releases it when the process ends, and like routes it belongs to the network
// namespace. A node that was killed needs none: the routes of its sandboxes remain.

import { createServer } from "node:net";

export interface PoolReservation {
  release(): Promise<void>;
}

/** Undefined when another process has reserved the pool. */
export function reservePool(pool: string): Promise<PoolReservation | undefined> {
  const server = createServer((socket) => socket.destroy());
  return new Promise((resolve) => {
    server.once("error", () => resolve(undefined));
    server.listen(`\0skerry-pool-${pool}`, () => {
      server.unref();
      resolve({ release: () => new Promise((released) => server.close(() => released())) });
    });
  });
}
