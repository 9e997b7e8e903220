// The connections of sandboxes that are intercepted because of header rules. What the rules are comes from the options of a sandbox, and is
// known as long as it runs. Its secrets come from the control plane and are in the memory of this process alone.
//
// Failure policy: a connection to a host of a rule without its secrets, as after a restart of the node, is reset. It never goes on without its
// headers.

import { Secret } from "@skerry/base";
import { type HeaderRule, ruleForHost, type SandboxSecrets } from "@skerry/wire/node";
import { Authority, type Leaf } from "./authority.ts";
import { type AddedHeaders, type Interception, intercept, type UpstreamTrust, upstreamTrust } from "./intercept.ts";

interface Held {
  readonly version: string;
  readonly seed: string;
  readonly authority: Promise<Authority> | undefined;
  readonly rules: Secret<SandboxSecrets["rules"]>;
}

/** A connection to take over; see Interception. */
export type Taken = Pick<Interception, "client" | "dial" | "onRefused"> & { readonly address: string; readonly host: string };

export class Interceptions {
  readonly #certificates: string;
  /** By the address of the sandbox. */
  readonly #rules = new Map<string, readonly HeaderRule[]>();
  readonly #held = new Map<string, Held>();
  #trust: UpstreamTrust | undefined;

  /** `certificates`: PEM of authorities that are trusted besides the public ones. */
  constructor(certificates: string) {
    this.#certificates = certificates;
  }

  setRules(address: string, rules: readonly HeaderRule[]): void {
    if (rules.length > 0) this.#rules.set(address, rules);
    else this.#rules.delete(address);
  }

  rulesAt(address: string): readonly HeaderRule[] {
    return this.#rules.get(address) ?? [];
  }

  /** Replaces the secrets of the sandbox at an address. Returns whether it must trust another authority than before. */
  provide(address: string, secrets: SandboxSecrets | undefined): boolean {
    const before = this.#held.get(address);
    const seed = secrets?.authoritySeed ?? "";
    if (!secrets) this.#held.delete(address);
    else {
      const made = seed === "" ? undefined : Authority.fromSeed(new Secret(seed));
      const authority = before?.seed === seed ? before.authority : made;
      this.#held.set(address, { version: secrets.version, seed, authority, rules: new Secret(secrets.rules) });
    }
    return seed !== (before?.seed ?? "");
  }

  /** The version of the secrets of a sandbox; "" when there are none. */
  versionAt(address: string): string {
    return this.#held.get(address)?.version ?? "";
  }

  /** PEM of the authority that the sandbox must trust; "" for none. */
  async certificateAt(address: string): Promise<string> {
    return (await this.#held.get(address)?.authority)?.certificate ?? "";
  }

  remove(address: string): void {
    this.#rules.delete(address);
    this.#held.delete(address);
  }

  /** Whether connections of a sandbox to a host must be taken over. A rule without headers stands for the host as it is. */
  isFor(address: string, host: string): boolean {
    return Object.keys(this.#ruleAt(address, host)?.headers ?? {}).length > 0;
  }

  /** Takes a connection over, until it ends. Never throws. */
  async take({ client, address, host, dial, onRefused }: Taken): Promise<void> {
    const leaf = await this.#leafFor(address, host).catch(() => undefined);
    if (!leaf) {
      onRefused("the secrets of the rule are not known, or there are too many new names");
      client.destroy();
      return;
    }
    this.#trust ??= upstreamTrust(this.#certificates);
    await intercept({ client, host, leaf, dial, trust: this.#trust, onRefused, added: () => this.#added(address, host) });
  }

  async #leafFor(address: string, host: string): Promise<Leaf | undefined> {
    return await (await this.#held.get(address)?.authority)?.leafFor(host);
  }

  #added(address: string, host: string): AddedHeaders {
    const rule = this.#ruleAt(address, host);
    if (!rule || Object.keys(rule.headers).length === 0) return { kind: "none" };
    const filled = this.#held
      .get(address)
      ?.rules.reveal()
      .find((one) => one.host === rule.host);
    if (!filled) return { kind: "unavailable", why: "the secrets of the rule are not known" };
    return filled.problem === "" ? { kind: "headers", headers: filled.headers } : { kind: "unavailable", why: filled.problem };
  }

  #ruleAt(address: string, host: string): HeaderRule | undefined {
    return ruleForHost(this.rulesAt(address), host);
  }
}
