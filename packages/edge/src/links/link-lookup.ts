import type { LinkProof, Target } from "@skerry/wire";
import { LRUCache } from "lru-cache";
import type { FindLink, ValidLink } from "../ports.ts";
import type { AttemptLimit } from "../signatures/attempt-limit.ts";

/** How long a link that was found, or not found, counts without another lookup. So a revoked link is refused after this time. */
const KEEP_MS = 5_000;

/** Maximum number of cached links, at about 300 bytes each. */
const MAX_CACHED = 10_000;

export type LinkAnswer =
  | { readonly kind: "valid"; readonly link: ValidLink }
  | { readonly kind: "unknown" }
  /** The address has caused too many failed lookups. */
  | { readonly kind: "limited" };

interface Known {
  readonly link: ValidLink | undefined;
  readonly until: number;
  readonly expiresAt: number;
}

export interface LinkLookupOptions {
  readonly findLink: FindLink;
  readonly attempts: AttemptLimit;
  /** A monotonic clock in milliseconds. */
  readonly now?: (() => number) | undefined;
}

/** Finds links. Unlike a route, a link that cannot be looked up again is not used any longer: it may have been revoked. */
export class LinkLookup {
  readonly #options: LinkLookupOptions;
  readonly #now: () => number;
  readonly #known = new LRUCache<string, Known>({ max: MAX_CACHED });

  constructor(options: LinkLookupOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
  }

  /** Throws if the control plane does not answer. */
  async find(target: Target, proof: LinkProof, clientAddress: string): Promise<LinkAnswer> {
    const key = `${target.sandboxId} ${target.port} ${proof.linkId} ${Buffer.from(proof.digest).toString("base64")}`;
    const known = this.#known.get(key);
    if (known && known.until > this.#now()) return this.#answerFrom(known);
    const { findLink, attempts } = this.#options;
    if (!attempts.take(clientAddress)) return { kind: "limited" };
    let link: ValidLink | undefined;
    // The age of an answer counts from the question: the link may be revoked while the answer is on its way.
    const asked = this.#now();
    try {
      link = await findLink(target, proof);
    } catch (error) {
      attempts.giveBack(clientAddress);
      throw error;
    }
    if (link) attempts.giveBack(clientAddress);
    const found = { link, until: asked + KEEP_MS, expiresAt: asked + (link?.expiresInMs ?? 0) };
    this.#known.set(key, found);
    return this.#answerFrom(found);
  }

  #answerFrom({ link, expiresAt }: Known): LinkAnswer {
    const expiresInMs = expiresAt - this.#now();
    return link && expiresInMs > 0 ? { kind: "valid", link: { ...link, expiresInMs } } : { kind: "unknown" };
  }
}
