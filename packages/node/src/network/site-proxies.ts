// The addresses of the site's proxies, which the firewall lets sandboxes reach. A proxy that is named by an address is known at once. The
// addresses of a name are looked up when the node starts, and then every minute, because they may change.
//
// Failure policy: a name that cannot be resolved keeps its former addresses. Without any, sandboxes cannot reach this proxy yet.

import { lookup } from "node:dns/promises";
import { isIPv4 } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { asError, type Logger, type Secret } from "@skerry/base";
import type { ProxyAddress } from "@skerry/runtime";
import type { SiteNetwork } from "@skerry/wire";

const LOOK_MS = 60_000;
/** Until all names were found once. */
const FIRST_LOOK_MS = 5_000;
const LOOKUP_TIMEOUT_MS = 5_000;
const DEFAULT_PORTS: Readonly<Record<string, number>> = { "http:": 80, "https:": 443 };

type Resolve = (host: string) => Promise<readonly string[]>;

export interface SiteProxiesOptions {
  readonly site: Secret<SiteNetwork> | undefined;
  readonly logger: Logger;
  readonly resolve?: Resolve;
}

export class SiteProxies {
  readonly #proxies: readonly { readonly host: string; readonly port: number }[];
  readonly #found = new Map<string, readonly string[]>();
  readonly #resolve: Resolve;
  readonly #logger: Logger;
  readonly #closing = new AbortController();
  #missing = "";

  constructor({ site, logger, resolve = resolveIPv4 }: SiteProxiesOptions) {
    this.#proxies = site ? proxiesOf(site.reveal()) : [];
    this.#logger = logger;
    this.#resolve = resolve;
  }

  /** Looks all names up, and returns the addresses that are known. Never throws. */
  async look(): Promise<readonly ProxyAddress[]> {
    const hosts = new Set(this.#proxies.map(({ host }) => host));
    const missing: string[] = [];
    await Promise.all(
      [...hosts].map(async (host) => {
        try {
          this.#found.set(host, isIPv4(host) ? [host] : (await this.#resolve(host)).toSorted());
        } catch (error) {
          missing.push(`${host}: ${asError(error).message}`);
        }
      }),
    );
    this.#report(missing.toSorted().join("; "));
    return this.#proxies.flatMap(({ host, port }) => (this.#found.get(host) ?? []).map((address) => ({ address, port })));
  }

  /** Calls `onChange` whenever a name has other addresses than before, until the node closes. */
  follow(known: readonly ProxyAddress[], onChange: (proxies: readonly ProxyAddress[]) => Promise<void>): void {
    if (this.#proxies.every(({ host }) => isIPv4(host))) return;
    void this.#follow(JSON.stringify(known), onChange);
  }

  async #follow(before: string, onChange: (proxies: readonly ProxyAddress[]) => Promise<void>): Promise<void> {
    let known = before;
    for (;;) {
      await sleep(this.#missing === "" ? LOOK_MS : FIRST_LOOK_MS, undefined, { ref: false, signal: this.#closing.signal }).catch(() => {});
      if (this.#closing.signal.aborted) return;
      const proxies = await this.look();
      const now = JSON.stringify(proxies);
      if (now === known || this.#closing.signal.aborted) continue;
      try {
        await onChange(proxies);
        known = now;
      } catch (error) {
        this.#logger.error({ err: asError(error) }, "the addresses of the site's proxies could not be changed; will be tried again");
      }
    }
  }

  #report(missing: string): void {
    if (missing !== "" && missing !== this.#missing) this.#logger.warn({ why: missing }, "a proxy of the site has no known address");
    this.#missing = missing;
  }

  close(): void {
    this.#closing.abort();
  }
}

/** Host and port of each proxy, once. */
function proxiesOf({ httpProxy, httpsProxy }: SiteNetwork): { host: string; port: number }[] {
  const urls = [httpProxy, httpsProxy].filter((url) => url !== "").map((url) => new URL(url));
  const proxies = urls.map(({ hostname, port, protocol }) => ({ host: hostname, port: Number(port) || (DEFAULT_PORTS[protocol] ?? 0) }));
  return proxies.filter((one, index) => proxies.findIndex(({ host, port }) => host === one.host && port === one.port) === index);
}

async function resolveIPv4(host: string): Promise<string[]> {
  const late = sleep(LOOKUP_TIMEOUT_MS, undefined, { ref: false }).then(() => {
    throw new Error("no answer from the name servers");
  });
  const found = await Promise.race([lookup(host, { family: 4, all: true }), late]);
  return found.map(({ address }) => address);
}
