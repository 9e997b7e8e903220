import { type Client, Code, ConnectError } from "@connectrpc/connect";
import type { SandboxId } from "@skerry/wire";
import type { RouteService } from "@skerry/wire/control";
import type { Route, RouteTable } from "./ports.ts";

export interface RouteTableOptions {
  /** How long an answer is used without asking again. Default 5 s. */
  readonly maxAgeMs?: number;
  /** How many sandboxes are remembered. Default 10,000. */
  readonly maxEntries?: number;
  readonly now?: () => number;
}

/**
 * The control plane's route table, remembered for a short while. Only running sandboxes are remembered: "not running" is always
 * asked for, so that a sandbox is reachable from the moment it was created. Parallel questions about one sandbox are one call.
 */
export function routeTableFrom(client: Client<typeof RouteService>, options: RouteTableOptions = {}): RouteTable {
  const maxAgeMs = options.maxAgeMs ?? 5_000;
  const maxEntries = options.maxEntries ?? 10_000;
  const now = options.now ?? Date.now;
  const known = new Map<SandboxId, { route: Route; until: number }>();
  const asking = new Map<SandboxId, Promise<Route | undefined>>();

  const ask = async (sandboxId: SandboxId): Promise<Route | undefined> => {
    const route = await readRoute(client, sandboxId);
    // `forget` during the call means that this answer may be as old as the one that was wrong.
    if (route && asking.has(sandboxId)) {
      known.delete(sandboxId);
      known.set(sandboxId, { route, until: now() + maxAgeMs });
      if (known.size > maxEntries) known.delete(known.keys().next().value as SandboxId);
    }
    return route;
  };

  return {
    async find(sandboxId) {
      const entry = known.get(sandboxId);
      if (entry && entry.until > now()) return entry.route;
      known.delete(sandboxId);
      const running = asking.get(sandboxId);
      if (running) return running;
      const call: Promise<Route | undefined> = ask(sandboxId).finally(() => {
        if (asking.get(sandboxId) === call) asking.delete(sandboxId);
      });
      asking.set(sandboxId, call);
      return call;
    },
    forget(sandboxId) {
      known.delete(sandboxId);
      asking.delete(sandboxId);
    },
  };
}

async function readRoute(client: Client<typeof RouteService>, sandboxId: SandboxId): Promise<Route | undefined> {
  try {
    const { nodeId, nodeUrl } = await client.findRoute({ sandboxId }, { timeoutMs: 10_000 });
    return { nodeId, nodeUrl };
  } catch (error) {
    if (ConnectError.from(error).code === Code.NotFound) return undefined;
    throw error;
  }
}
