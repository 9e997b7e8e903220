import ipaddr from "ipaddr.js";
import { LRUCache } from "lru-cache";

/** Failed lookups that an address may cause at once. A page with many links to a sandbox that ended stays below this. */
const BURST = 60;

/** Failed lookups per second that an address may cause on average. */
const REFILL_PER_SECOND = 1;

/** Maximum number of addresses with a bucket. Eviction gives an address a full bucket. */
const MAX_ADDRESSES = 10_000;

/** A proxy may forward a text that is not an address. An IPv6 address has at most 39 characters, without a zone. */
const MAX_TEXT_LENGTH = 64;

interface Bucket {
  tokens: number;
  at: number;
}

/** A token bucket for each IPv4 address and each IPv6 /64. A /64 is the smallest network that a site gets. */
export class AttemptLimit {
  readonly #buckets = new LRUCache<string, Bucket>({ max: MAX_ADDRESSES });
  readonly #now: () => number;

  /** `now` is a monotonic clock in milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Takes a token. Returns false if the address has none left. */
  take(address: string): boolean {
    const bucket = this.#bucketOf(networkOf(address));
    if (bucket.tokens < 1) return false;
    bucket.tokens -= 1;
    return true;
  }

  /** Puts back the token of a lookup that did not fail. */
  giveBack(address: string): void {
    const bucket = this.#bucketOf(networkOf(address));
    bucket.tokens = Math.min(BURST, bucket.tokens + 1);
  }

  #bucketOf(network: string): Bucket {
    const at = this.#now();
    const bucket = this.#buckets.get(network) ?? { tokens: BURST, at };
    bucket.tokens = Math.min(BURST, bucket.tokens + ((at - bucket.at) / 1000) * REFILL_PER_SECOND);
    bucket.at = at;
    this.#buckets.set(network, bucket);
    return bucket;
  }
}

/** Returns the key of the bucket: an IPv4 address, or the /64 of an IPv6 address. Truncates other texts. */
export function networkOf(address: string): string {
  if (!ipaddr.isValid(address)) return address.slice(0, MAX_TEXT_LENGTH);
  const parsed = ipaddr.process(address);
  return parsed.kind() === "ipv4" ? parsed.toString() : parsed.toByteArray().slice(0, 8).join(".");
}
