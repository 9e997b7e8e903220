// Opens a connection to the outside for a sandbox, keeps it under the sandbox's policy, and writes it to the log when it ends.

import type { Socket } from "node:net";
import type { Dial, DialTarget } from "./dial.ts";
import { DialFailure } from "./dial.ts";
import type { EgressRecord } from "./egress-record.ts";
import type { SandboxEgress } from "./sandbox-egress.ts";

export interface OutsideRequest {
  readonly sandbox: SandboxEgress;
  readonly target: DialTarget;
  readonly protocol: EgressRecord["protocol"];
  /** The entry of the policy that allows it. */
  readonly rule: string;
  readonly signal: AbortSignal;
}

/** Throws DialFailure, which is in the log then. */
export async function openOutside(dial: Dial, { sandbox, target: asked, protocol, rule, signal }: OutsideRequest): Promise<Socket> {
  const timeMs = Date.now();
  const { way } = sandbox;
  const target = { ...asked, name: asked.name ?? sandbox.standIns.nameOf(asked.address) };
  const about = { protocol, name: target.name ?? "", port: target.port };
  const { stream, address } = await dial(sandbox, target, signal).catch((cause: unknown) => {
    const failure = cause instanceof DialFailure ? cause : new DialFailure("unreachable", "", { cause });
    if (!signal.aborted) sandbox.refused({ ...about, address: failure.address }, failure.reason);
    throw failure;
  });
  const judged = { name: target.name, address: target.name === undefined ? target.address : address };
  const unfollow = sandbox.follow({ ...judged, cut: () => stream.resetAndDestroy() });
  stream.once("close", () => {
    unfollow();
    const { bytesWritten: sentBytes, bytesRead: receivedBytes } = stream;
    sandbox.log({ timeMs, ...about, address, sentBytes, receivedBytes, verdict: "allowed", rule });
  });
  // The policy may have changed while the connection was being opened.
  if (sandbox.way !== way || !sandbox.judge(judged.name, judged).isAllowed || signal.aborted) {
    stream.resetAndDestroy();
    throw new DialFailure("name_not_allowed", address);
  }
  return stream;
}
