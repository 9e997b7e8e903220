// The transparent proxy of a node: it decides about the connections of sandboxes that the firewall redirects to it, by the names that they ask
// for, and connects to these names itself.
//
// It runs in the process of the node, like the tunnels to sandboxes. A restart cuts the connections that pass through it. While it is away
// nothing passes, because the redirected ports refuse connections and the firewall drops everything else.

import { createServer, type Server, type Socket } from "node:net";
import { asError, type Logger, PlatformError } from "@skerry/base";
import { type Destination, originalDestination } from "@skerry/base/original-destination";
import type { EgressPorts } from "@skerry/runtime";
import type { Ipv4Range } from "@skerry/wire";
import { isClosedToProxies } from "./closed-addresses.ts";
import { type Dial, directDial } from "./dial.ts";
import { DnsServer } from "./dns-server.ts";
import type { EgressRecord } from "./egress-record.ts";
import { HttpTraffic } from "./http-traffic.ts";
import { join } from "./join.ts";
import { NameLookup } from "./name-lookup.ts";
import { openOutside } from "./outside.ts";
import { type EgressPolicy, judgeAddress } from "./policy.ts";
import { type ProxyPassword, proxyDial } from "./proxy-dial.ts";
import { candidatePorts } from "./proxy-ports.ts";
import { SandboxEgress } from "./sandbox-egress.ts";
import { type Intercept, passTls } from "./tls-traffic.ts";

const HTTP_PORT = 80;
const HTTPS_PORT = 443;
const KEEP_ALIVE_MS = 60_000;

export interface EgressProxyOptions {
  /** Name servers of the operator. */
  readonly resolvers: readonly string[];
  readonly logger: Logger;
  /** Receives the log of the sandbox at an address. Must not throw. */
  readonly onRecord?: (address: string, record: EgressRecord) => void;
  /** PEM of authorities that are trusted besides the public ones, for proxies with TLS. */
  readonly certificates: string;
  /** Takes TLS connections over that are to be read. Default: none. */
  readonly intercept?: Intercept;
}

export class EgressProxy {
  readonly #sandboxes = new Map<string, SandboxEgress>();
  readonly #lookup: NameLookup;
  readonly #dial: Dial;
  readonly #http: HttpTraffic;
  readonly #server: Server;
  readonly #dns: DnsServer;
  readonly #options: EgressProxyOptions;
  /** Addresses that are not public, and at which proxies of callers may be. */
  #opened: readonly Ipv4Range[] = [];

  constructor(options: EgressProxyOptions) {
    this.#options = options;
    this.#lookup = new NameLookup(options.resolvers);
    this.#dial = this.#dialOf(options.certificates);
    this.#http = new HttpTraffic(this.#dial);
    const accepting = { allowHalfOpen: true, noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS };
    this.#server = createServer(accepting, (socket) => this.#accept(socket));
    this.#dns = new DnsServer({ lookup: this.#lookup, sandboxAt: (address) => this.#sandboxes.get(address) });
  }

  /** Each sandbox goes the way that its policy says: directly, or through its proxy. */
  #dialOf(certificates: string): Dial {
    const isClosed = (address: string) => isClosedToProxies(this.#opened, address);
    const direct = directDial(this.#lookup);
    const throughProxy = proxyDial({ lookup: this.#lookup, certificates, isClosedToProxies: isClosed });
    return (sandbox, target, signal) => (sandbox.policy.proxy ? throughProxy : direct)(sandbox, target, signal);
  }

  /**
   * Starts to listen. No sandbox has a policy yet, so every connection is refused. `opened`: addresses that are not public, and at which
   * proxies of callers may be.
   */
  async listen(opened: readonly Ipv4Range[]): Promise<EgressPorts> {
    this.#opened = opened;
    for (const port of candidatePorts()) {
      try {
        await listenOn(this.#server, port);
        await this.#dns.listen(port + 1);
        return { proxy: port, dns: port + 1 };
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
        await new Promise((resolve) => this.#server.close(resolve));
      }
    }
    throw new PlatformError("capacity_unavailable", "the egress proxy found no free ports");
  }

  policyAt(address: string): EgressPolicy | undefined {
    return this.#sandboxes.get(address)?.policy;
  }

  /** Makes the policy of the sandbox at this address this one, and cuts the connections that it does not allow. */
  set(address: string, policy: EgressPolicy): void {
    const known = this.#sandboxes.get(address);
    if (known) known.setPolicy(policy);
    else this.#sandboxes.set(address, new SandboxEgress(policy, (record) => this.#options.onRecord?.(address, record)));
  }

  /** Replaces the password of the sandbox's proxy. */
  provide(address: string, password: ProxyPassword | undefined): void {
    const sandbox = this.#sandboxes.get(address);
    if (sandbox) sandbox.proxyPassword = password;
  }

  /** Ends all connections of the sandbox at this address. */
  remove(address: string): void {
    const sandbox = this.#sandboxes.get(address);
    this.#sandboxes.delete(address);
    sandbox?.end();
  }

  #accept(socket: Socket): void {
    socket.on("error", () => {});
    // Spoofed source addresses do not pass the firewall.
    const sandbox = this.#sandboxes.get(socket.remoteAddress?.replace(/^::ffff:/, "") ?? "");
    const original = originalDestination(socket);
    if (!sandbox || !original) return void socket.resetAndDestroy();
    const forget = sandbox.admit({ cut: () => socket.resetAndDestroy() });
    if (!forget) {
      sandbox.refused({ protocol: "tcp", name: "", ...original }, "too_many_connections");
      return void socket.resetAndDestroy();
    }
    const gone = new AbortController();
    socket.once("close", () => {
      forget();
      gone.abort();
    });
    const arrived = { sandbox, socket, original, signal: gone.signal };
    this.#pass(arrived).catch((error: unknown) => {
      this.#options.logger.error({ err: asError(error) }, "a connection to the egress proxy failed");
      socket.resetAndDestroy();
    });
  }

  async #pass(arrived: Parameters<typeof passTls>[1]): Promise<void> {
    const { sandbox, socket, original, signal } = arrived;
    const isNamed = !isOpen(sandbox, original);
    if (isNamed && original.port === HTTP_PORT) return this.#http.serve(arrived, socket);
    const { intercept } = this.#options;
    if (original.port === HTTPS_PORT && (isNamed || sandbox.policy.hasHeaderRules))
      return await passTls({ dial: this.#dial, ...(intercept && { intercept }) }, arrived);
    // Other protocols name no host.
    const verdict = sandbox.judge(undefined, original);
    if (!verdict.isAllowed) {
      sandbox.refused({ protocol: "tcp", name: "", ...original }, verdict.reason);
      return void socket.resetAndDestroy();
    }
    const target = { ...original, name: undefined };
    const outside = await openOutside(this.#dial, { sandbox, target, protocol: "tcp", rule: "", signal }).catch(() => undefined);
    if (outside) join(socket, outside);
    else socket.resetAndDestroy();
  }

  /** Cuts all connections. */
  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const address of [...this.#sandboxes.keys()]) this.remove(address);
    this.#lookup.close();
    await Promise.all([closed, this.#dns.close()]);
  }
}

/** Whether any protocol may go to an address. */
function isOpen({ policy }: SandboxEgress, { address }: Destination): boolean {
  return policy.proxy !== undefined && judgeAddress(policy, address).isAllowed;
}

function listenOn(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host: "0.0.0.0", port }, () => {
      server.off("error", reject);
      resolve();
    });
  });
}
