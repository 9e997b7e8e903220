import { AGENT_PORT, type Target } from "@skerry/wire";
import { OpenRequests } from "./open-requests.ts";
import { RequestRate } from "./request-rate.ts";

export interface TrafficLimitsOptions {
  /** Requests and upgraded connections at a time. 0: no limit. */
  readonly maxSandboxConnections: number;
  readonly maxGroupConnections: number;
  /** Requests per second on average. 0: no limit. */
  readonly maxSandboxRequestsPerSecond: number;
  readonly maxGroupRequestsPerSecond: number;
  /** A monotonic clock in milliseconds. */
  readonly now?: (() => number) | undefined;
}

/** The limit that a request exceeds. */
export interface Excess {
  readonly scope: "sandbox" | "group";
  readonly of: "connections" | "requests";
  readonly limit: number;
}

/**
 * Limits the traffic of each sandbox, and that of each group of sandboxes, so that neither can use up the edge. The route of a sandbox names
 * its group. The agents' ports are counted by themselves: a flood on the other ports does not keep the owner from a sandbox.
 */
export class TrafficLimits {
  readonly #scopes: readonly { readonly scope: Excess["scope"]; readonly open: OpenRequests; readonly rate: RequestRate }[];

  constructor(options: TrafficLimitsOptions) {
    const { now } = options;
    this.#scopes = [
      {
        scope: "sandbox",
        open: new OpenRequests(options.maxSandboxConnections),
        rate: new RequestRate(options.maxSandboxRequestsPerSecond, now),
      },
      {
        scope: "group",
        open: new OpenRequests(options.maxGroupConnections),
        rate: new RequestRate(options.maxGroupRequestsPerSecond, now),
      },
    ];
  }

  /** Counts a request until the signal is aborted. Returns the limit that it would exceed, and then counts nothing. */
  take({ sandboxId, port }: Target, group: string | undefined, signal: AbortSignal): Excess | undefined {
    const suffix = port === AGENT_PORT ? " agent" : "";
    const keys = { sandbox: `${sandboxId}${suffix}`, group: group === undefined ? undefined : `${group}${suffix}` };
    for (const { scope, open, rate } of this.#scopes) {
      const key = keys[scope];
      if (key === undefined) continue;
      if (rate.isSpent(key)) return { scope, of: "requests", limit: rate.perSecond };
      if (open.isFull(key)) return { scope, of: "connections", limit: open.limit };
    }
    for (const { scope, open, rate } of this.#scopes) {
      const key = keys[scope];
      if (key === undefined) continue;
      rate.take(key);
      open.add(key, signal);
    }
    return undefined;
  }
}
