import { LRUCache } from "lru-cache";

/** Requests that a key may have at once after a quiet time, as seconds of its rate. */
const BURST_SECONDS = 2;

/** Maximum number of keys with a bucket. Only running sandboxes get one, so made-up ids evict none. */
const MAX_KEYS = 100_000;

interface Bucket {
  tokens: number;
  at: number;
}

/** A token bucket for the requests of each key, so that a flood of short requests to one sandbox leaves the edge's time to the others. */
export class RequestRate {
  /** Requests per second. 0: no limit. */
  readonly perSecond: number;
  readonly #buckets = new LRUCache<string, Bucket>({ max: MAX_KEYS });
  readonly #now: () => number;

  /** `now` is a monotonic clock in milliseconds. */
  constructor(perSecond: number, now: () => number = () => performance.now()) {
    this.perSecond = perSecond;
    this.#now = now;
  }

  isSpent(key: string): boolean {
    return this.perSecond !== 0 && this.#bucket(key).tokens < 1;
  }

  /** Takes a token. Refused requests cost nothing, so call it for those that are not refused. */
  take(key: string): void {
    if (this.perSecond !== 0) this.#bucket(key).tokens -= 1;
  }

  #bucket(key: string): Bucket {
    const most = this.perSecond * BURST_SECONDS;
    const at = this.#now();
    const bucket = this.#buckets.get(key) ?? { tokens: most, at };
    bucket.tokens = Math.min(most, bucket.tokens + ((at - bucket.at) / 1000) * this.perSecond);
    bucket.at = at;
    this.#buckets.set(key, bucket);
    return bucket;
  }
}
