// The connections of one sandbox that pass through the egress proxy, and the policy that they are judged by.

import type { Destination } from "@skerry/base/original-destination";
import type { EgressLog, EgressRecord } from "./egress-record.ts";
import { type EgressPolicy, judgeAddress, judgeName, type Refusal, type Verdict } from "./policy.ts";
import type { ProxyPassword } from "./proxy-dial.ts";
import { StandIns } from "./stand-ins.ts";

/** Open connections of one sandbox to the proxy. Each one takes descriptors of the node. */
const MAX_CONNECTIONS = 1_024;

/** A connection to the outside, which a change of the policy may cut. */
export interface OpenEgress {
  readonly name: string | undefined;
  readonly address: string;
  cut(): void;
}

export class SandboxEgress {
  readonly log: EgressLog;
  /** What the addresses stand for that the name server gave to a sandbox with a proxy. */
  readonly standIns = new StandIns();
  /** Undefined: not known. */
  proxyPassword: ProxyPassword | undefined;
  #policy: EgressPolicy;
  readonly #outside = new Set<OpenEgress>();
  readonly #clients = new Set<{ cut(): void }>();

  constructor(policy: EgressPolicy, log: EgressLog) {
    this.#policy = policy;
    this.log = log;
  }

  get policy(): EgressPolicy {
    return this.#policy;
  }

  /** Cuts the connections that this policy does not allow, and those that go another way than it says. */
  setPolicy(policy: EgressPolicy): void {
    const way = this.way;
    this.#policy = policy;
    for (const open of [...this.#outside]) {
      if (this.way !== way || !this.judge(open.name, { address: open.address }).isAllowed) open.cut();
    }
  }

  /** The proxy through which connections go; "" without one. */
  get way(): string {
    return this.#policy.proxy?.credentialId ?? "";
  }

  /** A name that is allowed is enough, and so is an address that is open. */
  judge(name: string | undefined, { address }: Pick<Destination, "address">): Verdict {
    const byName: Verdict = name === undefined ? { isAllowed: false, reason: "no_name" } : judgeName(this.#policy, name);
    if (byName.isAllowed) return byName;
    const byAddress = judgeAddress(this.#policy, address);
    return byAddress.isAllowed ? byAddress : byName;
  }

  /** Counts a connection of the sandbox until the returned function is called. Undefined when there are too many. */
  admit(client: { cut(): void }): (() => void) | undefined {
    if (this.#clients.size >= MAX_CONNECTIONS) return undefined;
    this.#clients.add(client);
    return () => this.#clients.delete(client);
  }

  /** The connection is cut when the policy changes so that it is not allowed, until the returned function is called. */
  follow(open: OpenEgress): () => void {
    this.#outside.add(open);
    return () => this.#outside.delete(open);
  }

  refused(about: Pick<EgressRecord, "protocol" | "name" | "address" | "port">, reason: Refusal): void {
    this.log({ timeMs: Date.now(), sentBytes: 0, receivedBytes: 0, verdict: "refused", rule: reason, ...about });
  }

  /** Cuts every connection. */
  end(): void {
    for (const client of [...this.#clients]) client.cut();
    for (const open of [...this.#outside]) open.cut();
  }
}
