// Opens the connections of the egress proxy to the outside.

import { connect, type Socket } from "node:net";
import { isClosedToAll, isOwnConnection } from "./closed-addresses.ts";
import type { NameLookup } from "./name-lookup.ts";
import type { Refusal } from "./policy.ts";
import type { SandboxEgress } from "./sandbox-egress.ts";

/** Addresses of a name that are tried, one after the other. */
const MAX_TRIED = 4;
const CONNECT_TIMEOUT_MS = 10_000;
const KEEP_ALIVE_MS = 60_000;

export interface DialTarget {
  /** The name that was judged. Undefined: `address` was. */
  readonly name: string | undefined;
  /** Where the client was going. Not used with a name. */
  readonly address: string;
  readonly port: number;
}

export interface Dialed {
  readonly stream: Socket;
  /** The address that the connection leads to. */
  readonly address: string;
}

/** Opens a connection for a sandbox. Throws DialFailure. */
export type Dial = (sandbox: SandboxEgress, target: DialTarget, signal: AbortSignal) => Promise<Dialed>;

export class DialFailure extends Error {
  override readonly name = "DialFailure";
  readonly reason: Refusal;
  /** The last address that was tried, or "". */
  readonly address: string;

  constructor(reason: Refusal, address: string, options?: ErrorOptions) {
    super(`the destination cannot be reached: ${reason}`, options);
    this.reason = reason;
    this.address = address;
  }
}

/**
 * Connects to the destination itself. A name is looked up here, and what is checked is what is connected to, so that an answer that changes
 * in between changes nothing.
 */
export function directDial(lookup: NameLookup): Dial {
  return async (_sandbox, { name, address, port }, signal) => {
    const addresses = name === undefined ? [address] : await addressesOf(lookup, name);
    const open = addresses.filter((one) => !isClosedToAll(one));
    if (open.length === 0) throw new DialFailure("own_network", addresses[0] ?? "");
    let failure: DialFailure | undefined;
    for (const one of open.slice(0, MAX_TRIED)) {
      signal.throwIfAborted();
      try {
        const stream = await openSocket({ address: one, port }, signal);
        if (!isOwnConnection(stream)) return { stream, address: one };
        stream.destroy();
        failure = new DialFailure("own_network", one);
      } catch (error) {
        failure = new DialFailure("unreachable", one, { cause: error });
      }
    }
    throw failure ?? new DialFailure("unreachable", "");
  };
}

/** Throws DialFailure. */
export async function addressesOf(lookup: NameLookup, name: string): Promise<readonly string[]> {
  try {
    return (await lookup.addresses(name)).addresses;
  } catch (error) {
    throw new DialFailure("unknown_name", "", { cause: error });
  }
}

export function openSocket({ address, port }: { address: string; port: number }, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({
      host: address,
      port,
      allowHalfOpen: true,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: KEEP_ALIVE_MS,
    });
    const end = (error: Error) => {
      socket.destroy();
      reject(error);
    };
    const abort = () => end(new Error("the client has gone"));
    const timer = setTimeout(() => end(new Error("no answer")), CONNECT_TIMEOUT_MS);
    signal.addEventListener("abort", abort, { once: true });
    const settle = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
    };
    socket.once("error", (error) => {
      settle();
      end(error);
    });
    socket.once("connect", () => {
      settle();
      socket.removeAllListeners("error");
      socket.on("error", () => {});
      resolve(socket);
    });
  });
}
