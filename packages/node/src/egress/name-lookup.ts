// Looks names up at the operator's resolvers, for the egress proxy itself and for its name server.

import { Resolver } from "node:dns/promises";

/** The longest time for which an answer is kept. It only saves queries: what is connected to is what was checked. */
const MAX_KEPT_MS = 30_000;
const MAX_KEPT = 4_096;
const TIMEOUT_MS = 2_000;
const TRIES = 3;

export interface FoundAddresses {
  readonly addresses: readonly string[];
  readonly ttlSeconds: number;
}

export class NameLookup {
  readonly resolver: Resolver;
  readonly #kept = new Map<string, { readonly until: number; readonly found: Promise<FoundAddresses> }>();

  constructor(servers: readonly string[]) {
    this.resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES });
    this.resolver.setServers([...servers]);
  }

  /** The IPv4 addresses of a name, through all its aliases. Throws what the resolver throws: `ENOTFOUND`, `ENODATA` and others. */
  async addresses(name: string): Promise<FoundAddresses> {
    const kept = this.#kept.get(name);
    if (kept && kept.until > Date.now()) return await kept.found;
    const found = this.#ask(name);
    // Questions at the same time share an answer. How long it is kept is known afterwards.
    this.#keep(name, { until: Date.now() + TIMEOUT_MS, found });
    try {
      const { ttlSeconds } = await found;
      this.#keep(name, { until: Date.now() + Math.min(ttlSeconds * 1000, MAX_KEPT_MS), found });
    } catch (error) {
      this.#kept.delete(name);
      throw error;
    }
    return await found;
  }

  async #ask(name: string): Promise<FoundAddresses> {
    const records = await this.resolver.resolve4(name, { ttl: true });
    return { addresses: records.map(({ address }) => address), ttlSeconds: Math.min(...records.map(({ ttl }) => ttl)) };
  }

  #keep(name: string, entry: { readonly until: number; readonly found: Promise<FoundAddresses> }): void {
    this.#kept.delete(name);
    this.#kept.set(name, entry);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > MAX_KEPT && oldest !== undefined) this.#kept.delete(oldest);
  }

  close(): void {
    this.resolver.cancel();
  }
}
