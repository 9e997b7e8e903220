import { AGENT_PORT, type Target } from "@skerry/wire";
import { LRUCache } from "lru-cache";

/** Requests that a sandbox may have at once after a quiet time, as seconds of its rate. */
const BURST_SECONDS = 2;

/** Maximum number of sandboxes with a bucket. Only running sandboxes get one, so made-up ids evict none. */
const MAX_SANDBOXES = 100_000;

interface Bucket {
  tokens: number;
  at: number;
}

/**
 * A token bucket for the requests of each sandbox, so that a flood of short requests to one sandbox leaves the edge's time to the others.
 * The agent's port has a bucket of its own: a flood on the other ports does not keep the owner from the sandbox.
 */
export class RequestRate {
  /** Requests per second. 0: no limit. */
  readonly perSecond: number;
  readonly #buckets = new LRUCache<string, Bucket>({ max: MAX_SANDBOXES });
  readonly #now: () => number;

  /** `now` is a monotonic clock in milliseconds. */
  constructor(perSecond: number, now: () => number = () => performance.now()) {
    this.perSecond = perSecond;
    this.#now = now;
  }

  /** Takes a token. Returns false if the sandbox has none left. Refused requests cost nothing. */
  take({ sandboxId, port }: Target): boolean {
    if (this.perSecond === 0) return true;
    const key = port === AGENT_PORT ? `${sandboxId} agent` : sandboxId;
    const most = this.perSecond * BURST_SECONDS;
    const at = this.#now();
    const bucket = this.#buckets.get(key) ?? { tokens: most, at };
    bucket.tokens = Math.min(most, bucket.tokens + ((at - bucket.at) / 1000) * this.perSecond);
    bucket.at = at;
    this.#buckets.set(key, bucket);
    if (bucket.tokens < 1) return false;
    bucket.tokens -= 1;
    return true;
  }
}
