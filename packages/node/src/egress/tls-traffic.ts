// TLS connections of sandboxes: judged by the server name of their first message, and passed on as they are.

import type { Socket } from "node:net";
import type { Destination } from "@skerry/base/original-destination";
import { type ClientHello, MAX_HELLO_BYTES, readClientHello } from "./client-hello.ts";
import type { Dial } from "./dial.ts";
import { join } from "./join.ts";
import { hostName } from "./names.ts";
import { openOutside } from "./outside.ts";
import type { Refusal } from "./policy.ts";
import type { SandboxEgress } from "./sandbox-egress.ts";

const HELLO_TIMEOUT_MS = 20_000;
/** Each one makes the proxy read the message again from its start. */
const MAX_HELLO_CHUNKS = 2_048;
/** The fatal alert `access_denied`, which clients report by name. */
const ACCESS_DENIED = Buffer.from([21, 3, 3, 0, 2, 2, 49]);

/** A connection whose client has named its server. The client's first message is back in the socket. */
export interface TlsPassage {
  readonly sandbox: SandboxEgress;
  readonly socket: Socket;
  /** Where the client was going. */
  readonly original: Destination;
  /** Undefined when the client named no server. */
  readonly name: string | undefined;
  /** Opens a connection to where the client may go. Rejects when it cannot be opened, which is in the log then. */
  open(): Promise<Socket>;
}

/**
 * Takes a connection over, for example to end its TLS. Returns false when it does not, without having touched the socket. Asked for every
 * connection that the policy allows.
 */
export type Intercept = (passage: TlsPassage) => boolean;

export interface TlsTrafficOptions {
  readonly dial: Dial;
  readonly intercept?: Intercept;
}

interface Arrived {
  readonly sandbox: SandboxEgress;
  readonly socket: Socket;
  readonly original: Destination;
  readonly signal: AbortSignal;
}

export async function passTls({ dial, intercept }: TlsTrafficOptions, arrived: Arrived): Promise<void> {
  const { sandbox, socket, original, signal } = arrived;
  const { hello, bytes } = await readHello(socket);
  if (socket.destroyed) return;
  const named = hello.kind === "hello" ? hello.name : undefined;
  const name = named === undefined ? undefined : hostName(named);
  const refuse = (reason: Refusal) => {
    sandbox.refused({ protocol: "tls", name: name ?? "", address: original.address, port: original.port }, reason);
    socket.end(ACCESS_DENIED);
    socket.destroySoon();
  };
  const verdict = sandbox.judge(name, original);
  if (!verdict.isAllowed) return refuse(hello.kind === "hello" ? verdict.reason : "not_decidable");
  // An open address is open for every protocol. Otherwise the name decides, and it must be the one that counts for the server.
  const isByName = verdict.rule !== "";
  if (isByName && verdict.rule !== "*" && hello.kind === "hello" && hello.isEncrypted) return refuse("encrypted_client_hello");
  socket.unshift(bytes);
  const target = { ...original, name: isByName ? name : undefined };
  const open = () => openOutside(dial, { sandbox, target, protocol: "tls", rule: verdict.rule, signal });
  if (hello.kind === "hello" && intercept?.({ sandbox, socket, original, name, open })) return;
  let outside: Socket;
  try {
    outside = await open();
  } catch {
    return void socket.resetAndDestroy();
  }
  join(socket, outside);
}

/** Reads until the client's first message is complete, or is none. */
function readHello(socket: Socket): Promise<{ readonly hello: ClientHello; readonly bytes: Buffer }> {
  return new Promise((resolve) => {
    let bytes: Buffer = Buffer.alloc(0);
    let chunks = 0;
    const finish = (hello: ClientHello) => {
      clearTimeout(timer);
      socket.off("data", onData).off("end", onEnd).off("close", onEnd).pause();
      resolve({ hello, bytes });
    };
    const onEnd = () => finish({ kind: "no_tls" });
    const onData = (chunk: Buffer) => {
      bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk]);
      chunks += 1;
      const hello = readClientHello(bytes);
      if (hello.kind !== "incomplete") finish(hello);
      else if (bytes.length > 2 * MAX_HELLO_BYTES || chunks > MAX_HELLO_CHUNKS) onEnd();
    };
    const timer = setTimeout(onEnd, HELLO_TIMEOUT_MS);
    socket.on("data", onData).once("end", onEnd).once("close", onEnd);
  });
}
