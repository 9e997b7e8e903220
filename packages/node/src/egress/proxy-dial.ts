// Opens connections through the SOCKS5 proxy that the caller of a sandbox chose. The policy has judged them before.
//
// The password goes to the proxy and to nobody else. Errors of the client for SOCKS5 contain it, so none of them leaves this module.

import { isIP, type Socket } from "node:net";
import { setImmediate } from "node:timers/promises";
import { connect as connectTls, createSecureContext, rootCertificates, type SecureContext } from "node:tls";
import type { Secret } from "@skerry/base";
import { type OutgoingProxy, proxyHostOf } from "@skerry/wire/node";
import { SocksClient } from "socks";
import { isClosedToAll, isOwnConnection } from "./closed-addresses.ts";
import { addressesOf, type Dial, DialFailure, type DialTarget, openSocket } from "./dial.ts";
import type { NameLookup } from "./name-lookup.ts";
import { judgeAddress } from "./policy.ts";
import type { SandboxEgress } from "./sandbox-egress.ts";
import { isStandIn } from "./stand-ins.ts";

/** For TLS and SOCKS5 together, in which the proxy connects to the destination. */
const HANDSHAKE_TIMEOUT_MS = 30_000;
/** How the errors begin that mean that the proxy could not reach the destination, or did not want to. */
const REJECTED = "Socks5 proxy rejected connection";

/** The password of a sandbox's proxy. */
export interface ProxyPassword {
  /** Must be that of the proxy, or else the password is for another one. */
  readonly credentialId: string;
  readonly password: Secret;
}

export interface ProxyDialOptions {
  readonly lookup: NameLookup;
  /** PEM of authorities that are trusted besides the public ones. */
  readonly certificates: string;
  /** Whether a proxy must not have this address. */
  readonly isClosedToProxies: (address: string) => boolean;
}

export function proxyDial(options: ProxyDialOptions): Dial {
  const contexts = new WeakMap<OutgoingProxy, SecureContext>();
  const contextFor = (proxy: OutgoingProxy) => {
    const ca = proxy.tls?.caCert || [...rootCertificates, ...(options.certificates === "" ? [] : [options.certificates])];
    const context = contexts.get(proxy) ?? createSecureContext({ ca, minVersion: "TLSv1.2" });
    contexts.set(proxy, context);
    return context;
  };
  return async (sandbox, target, signal) => {
    const { proxy } = sandbox.policy;
    const password = sandbox.proxyPassword;
    // Without it after a restart of the node, until the control plane has sent it again.
    if (!proxy || password?.credentialId !== proxy.credentialId) throw new DialFailure("proxy_failed", "");
    const { host, address } = await destinationOf(options.lookup, sandbox, target);
    const socket = await openProxy(options, proxy, signal);
    const abort = () => socket.resetAndDestroy();
    signal.addEventListener("abort", abort, { once: true });
    try {
      signal.throwIfAborted();
      const stream = proxy.tls ? await secured(socket, proxy, contextFor(proxy)) : socket;
      await handshake(stream, { proxy, password: password.password, host, port: target.port });
      return { stream, address };
    } catch (error) {
      socket.resetAndDestroy();
      if (error instanceof DialFailure) throw error;
      throw new DialFailure(messageOf(error).startsWith(REJECTED) ? "unreachable" : "proxy_failed", address);
    } finally {
      signal.removeEventListener("abort", abort);
    }
  };
}

/**
 * What to ask the proxy for. A name, when the policy allows the name, or denies nothing: then `address` is "". Otherwise the address decides,
 * so the name is looked up here, and the proxy gets an address that the policy allows.
 */
async function destinationOf(
  lookup: NameLookup,
  sandbox: SandboxEgress,
  { name, address }: DialTarget,
): Promise<{ readonly host: string; readonly address: string }> {
  if (name !== undefined && sandbox.judge(name, { address: "" }).isAllowed) return { host: name, address: "" };
  if (name === undefined && isStandIn(address)) throw new DialFailure("unknown_name", address);
  const addresses = name === undefined ? [address] : await addressesOf(lookup, name);
  const reachable = addresses.filter((one) => !isClosedToAll(one));
  const [open] = reachable.filter((one) => judgeAddress(sandbox.policy, one).isAllowed);
  if (open === undefined) throw new DialFailure(reachable.length > 0 ? "address_closed" : "own_network", addresses[0] ?? "");
  return { host: open, address: open };
}

async function openProxy({ lookup, isClosedToProxies }: ProxyDialOptions, proxy: OutgoingProxy, signal: AbortSignal): Promise<Socket> {
  const place = proxyHostOf(proxy.address);
  if (!place) throw new DialFailure("proxy_failed", "");
  const addresses = isIP(place.host) === 0 ? await addressesOf(lookup, place.host).catch(() => []) : [place.host];
  for (const address of addresses.filter((one) => !isClosedToProxies(one)).slice(0, 2)) {
    const socket = await openSocket({ address, port: place.port }, signal).catch(() => undefined);
    if (socket && !isOwnConnection(socket)) return socket;
    socket?.destroy();
  }
  throw new DialFailure("proxy_failed", "");
}

/** There is no way back to an unencrypted connection. */
function secured(socket: Socket, proxy: OutgoingProxy, secureContext: SecureContext): Promise<Socket> {
  const host = proxy.tls?.serverName || (proxyHostOf(proxy.address)?.host ?? "");
  return new Promise((resolve, reject) => {
    const stream = connectTls({ socket, host, secureContext, minVersion: "TLSv1.2", ...(isIP(host) === 0 && { servername: host }) });
    const timer = setTimeout(() => socket.resetAndDestroy(), HANDSHAKE_TIMEOUT_MS);
    const settle = (error?: Error) => {
      clearTimeout(timer);
      if (error) reject(error);
      else resolve(stream);
    };
    stream.once("secureConnect", () => settle());
    stream.once("close", () => settle(new Error("the proxy closed the connection")));
    stream.on("error", settle);
    // A connection with TLS cannot be reset itself.
    stream.resetAndDestroy = () => {
      socket.resetAndDestroy();
      return stream.destroy();
    };
  });
}

interface Asked {
  readonly proxy: OutgoingProxy;
  readonly password: Secret;
  readonly host: string;
  readonly port: number;
}

/** Asks the proxy for the destination. What the destination has sent by then is in the stream. */
async function handshake(stream: Socket, { proxy, password, host, port }: Asked): Promise<void> {
  await SocksClient.createConnection({
    command: "connect",
    existing_socket: stream,
    destination: { host, port },
    timeout: HANDSHAKE_TIMEOUT_MS,
    proxy: {
      // Not used: there is a connection.
      ...(proxyHostOf(proxy.address) ?? { host: "", port: 0 }),
      type: 5,
      ...(proxy.username === "" ? {} : { userId: proxy.username, password: password.reveal() }),
    },
  });
  // The client now emits what it has read too much, in the next turn of the event loop, and lets the stream flow. Both are for programs
  // whose listeners are there already.
  const early: Buffer[] = [];
  const keep = (chunk: Buffer) => early.push(chunk);
  stream.resume = () => stream;
  stream.on("data", keep);
  await setImmediate();
  stream.off("data", keep);
  Reflect.deleteProperty(stream, "resume");
  if (early.length > 0) stream.unshift(Buffer.concat(early));
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : "";
}
