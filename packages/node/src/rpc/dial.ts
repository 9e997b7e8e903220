import { setTimeout as sleep } from "node:timers/promises";
import { errnoOf, PlatformError, type RelaySocket } from "@skerry/base";
import { AGENT_PORT } from "@skerry/wire";
import { openLocalhost } from "../agent/open-localhost.ts";
import { openSocket } from "../agent/open-socket.ts";
import type { Sandboxes } from "../sandboxes/sandboxes.ts";

/** Waits between attempts while nothing listens on the port. They reach a server that is just starting. */
const RETRY_DELAYS_MS = [100, 200, 300, 400];

/**
 * Opens a TCP connection to a port inside a sandbox, also if a server listens only on the sandbox's localhost.
 * Throws PlatformError("sandbox_gone") or PlatformError("port_closed").
 */
export async function dialSandbox(
  sandboxes: Sandboxes,
  target: { sandboxId: string; port: number },
  signal?: AbortSignal,
): Promise<RelaySocket> {
  for (const delayMs of [...RETRY_DELAYS_MS, undefined]) {
    try {
      const socket = await sandboxes.connect(target.sandboxId, (host) => open({ host, port: target.port }, signal));
      if (socket) return socket;
    } catch (error) {
      if (error instanceof PlatformError) throw error;
      throw closed(target, error);
    }
    if (delayMs !== undefined) await sleep(delayMs, undefined, signal ? { signal } : {});
  }
  throw closed(target);
}

/** Undefined if the connection was refused. */
async function open(target: { host: string; port: number }, signal: AbortSignal | undefined): Promise<RelaySocket | undefined> {
  try {
    return await openSocket(target, signal);
  } catch (error) {
    if (errnoOf(error) !== "ECONNREFUSED") throw error;
    return target.port === AGENT_PORT ? undefined : openLocalhost(target, signal);
  }
}

function closed(target: { sandboxId: string; port: number }, cause?: unknown): PlatformError {
  return new PlatformError("port_closed", `port ${target.port} of sandbox ${target.sandboxId} does not answer`, { cause });
}
