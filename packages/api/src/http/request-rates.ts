// Requests per second of each team to each operation. Each API process counts for itself: a team may have the rate in every process.

import { LRUCache } from "lru-cache";
import type { Caller } from "../keys/caller.ts";
import type { Limits } from "../teams/limits.ts";

/** How long a changed rate may take until it counts here. The others are read for each request, this one would be for every request. */
const KNOWN_MS = 5_000;
const MAX_TEAMS = 10_000;
/** Teams times operations. */
const MAX_BUCKETS = 100_000;

interface Bucket {
  tokens: number;
  at: number;
}

export interface Rate {
  readonly isAllowed: boolean;
  readonly headers: Readonly<Record<string, string>>;
}

export interface RequestRatesDeps {
  readonly limitsOf: (teamId: string) => Promise<Limits>;
  /** For users, who act for no team yet. */
  readonly defaults: Limits;
  /** A monotonic clock in milliseconds. */
  readonly now?: () => number;
}

export class RequestRates {
  readonly #deps: RequestRatesDeps;
  readonly #now: () => number;
  readonly #known: LRUCache<string, { readonly perSecond: number | null; readonly at: number }>;
  readonly #buckets = new LRUCache<string, Bucket>({ max: MAX_BUCKETS });

  constructor(deps: RequestRatesDeps) {
    this.#deps = deps;
    this.#now = deps.now ?? (() => performance.now());
    this.#known = new LRUCache({ max: MAX_TEAMS });
  }

  /** Counts a request. Undefined: there is no limit for it. Refused requests cost nothing. */
  async take(caller: Caller, operationId: string): Promise<Rate | undefined> {
    const perSecond = await this.#rateOf(caller);
    if (perSecond === null) return undefined;
    const subject = caller.kind === "team" ? caller.team.id : caller.kind === "user" ? caller.userId : "";
    const at = this.#now();
    const key = `${subject} ${operationId}`;
    const bucket = this.#buckets.get(key) ?? { tokens: perSecond, at };
    bucket.tokens = Math.min(perSecond, bucket.tokens + ((at - bucket.at) / 1000) * perSecond);
    bucket.at = at;
    this.#buckets.set(key, bucket);
    const isAllowed = bucket.tokens >= 1;
    if (isAllowed) bucket.tokens -= 1;
    const headers = {
      "RateLimit-Limit": String(perSecond),
      "RateLimit-Remaining": String(Math.floor(bucket.tokens)),
      "RateLimit-Reset": String(Math.ceil((perSecond - bucket.tokens) / perSecond)),
    };
    return { isAllowed, headers };
  }

  async #rateOf(caller: Caller): Promise<number | null> {
    if (caller.kind === "user") return this.#deps.defaults.requestsPerSecond;
    // The operator is not limited, also when acting as a team.
    if (caller.kind !== "team" || caller.actor === "admin") return null;
    const known = this.#known.get(caller.team.id);
    if (known && this.#now() - known.at < KNOWN_MS) return known.perSecond;
    const { requestsPerSecond } = await this.#deps.limitsOf(caller.team.id);
    this.#known.set(caller.team.id, { perSecond: requestsPerSecond, at: this.#now() });
    return requestsPerSecond;
  }
}
