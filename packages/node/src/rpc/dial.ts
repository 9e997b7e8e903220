import { setTimeout as sleep } from "node:timers/promises";
import { errnoOf, PlatformError, RelaySocket } from "@skerry/base";
import type { Sandboxes } from "../sandboxes/sandboxes.ts";

/** Waits between attempts while nothing listens yet: a server that was just started is reached. */
const RETRY_DELAYS_MS = [100, 200, 300, 400];
const CONNECT_TIMEOUT_MS = 5_000;

/**
 * Opens a TCP connection to a port inside a sandbox. Throws PlatformError("sandbox_gone") or PlatformError("port_closed").
 */
export async function dialSandbox(
  sandboxes: Sandboxes,
  target: { sandboxId: string; port: number },
  signal?: AbortSignal,
): Promise<RelaySocket> {
  for (const delayMs of [...RETRY_DELAYS_MS, undefined]) {
    const host = sandboxes.addressOf(target.sandboxId);
    try {
      const socket = await open(host, target.port, signal);
      try {
        sandboxes.track(target.sandboxId, socket);
      } catch (error) {
        socket.destroy();
        throw error;
      }
      return socket;
    } catch (error) {
      if (error instanceof PlatformError) throw error;
      if (errnoOf(error) !== "ECONNREFUSED" || delayMs === undefined) {
        throw new PlatformError("port_closed", `port ${target.port} of sandbox ${target.sandboxId} does not answer`, { cause: error });
      }
      await sleep(delayMs, undefined, signal ? { signal } : {});
    }
  }
  throw new PlatformError("port_closed", `port ${target.port} of sandbox ${target.sandboxId} does not answer`);
}

function open(host: string, port: number, signal: AbortSignal | undefined): Promise<RelaySocket> {
  return new Promise((resolve, reject) => {
    const socket = new RelaySocket({ host, port });
    const timer = setTimeout(() => finish(new Error(`no answer in ${CONNECT_TIMEOUT_MS} ms`)), CONNECT_TIMEOUT_MS);
    const onAbort = () => finish(new Error("the caller went away"));
    function finish(error?: Error): void {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      socket.removeListener("error", finish);
      socket.removeListener("connect", onConnect);
      if (error) {
        socket.destroy();
        reject(error);
      } else resolve(socket);
    }
    const onConnect = () => finish();
    socket.once("error", finish);
    socket.once("connect", onConnect);
    signal?.addEventListener("abort", onAbort, { once: true });
    if (signal?.aborted) onAbort();
  });
}
