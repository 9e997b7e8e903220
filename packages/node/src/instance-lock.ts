// At most one process at a time may own what an instance has on this machine: a second one would take the first one's slots
// for remains. The lock is a listening socket without a file (an abstract address): the kernel frees it with its process,
// however that ends, so it is never stale.

import { createServer } from "node:net";
import { PlatformError } from "@skerry/base";

export interface InstanceLock {
  release(): Promise<void>;
}

/** Throws PlatformError("already_running") when another process has it. */
export async function lockInstance(instance: string): Promise<InstanceLock> {
  const server = createServer((socket) => socket.destroy());
  try {
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen({ path: `\0skerry-node-${instance}` }, resolve);
    });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    throw new PlatformError("already_running", "another process runs the node of this data folder: stop it first (./skerry down)", {
      cause: error,
    });
  }
  // The lock alone keeps no process alive.
  server.unref();
  return { release: () => new Promise((resolve) => server.close(() => resolve())) };
}
