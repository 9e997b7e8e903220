// The memory and open-file guards ask a sandbox's agent to kill processes. A guest may have taken over its agent, so the guards use the answer
// for the log only.

import { AGENT_RELIEVE_PATH } from "@skerry/wire";
import { connectAgent, exchange } from "./exchange.ts";

const ANSWER_TIMEOUT_MS = 2_000;
const MAX_NAME_LENGTH = 64;

export interface KilledProcess {
  readonly pid: number;
  readonly name: string;
  readonly bytes: number;
}

export interface Relief {
  /** How much memory to free, in bytes; the agent kills the largest processes first. */
  readonly bytes: number;
  /**
   * Kill even when all processes together hold less than `bytes`. Without it the agent then kills nothing, because the memory is being
   * freed already or belongs to no process.
   */
  readonly insist: boolean;
}

/** Returns the processes that the agent killed. Rejects when there is no well-formed answer within two seconds. */
export async function relieve(
  agent: { address: string; accessToken: string },
  relief: Relief | { readonly files: number },
): Promise<KilledProcess[]> {
  const socket = await connectAgent(agent.address, ANSWER_TIMEOUT_MS);
  const asked = { method: "POST", path: AGENT_RELIEVE_PATH, body: JSON.stringify(relief), token: agent.accessToken } as const;
  const { status, text } = await exchange(socket, asked, { timeoutMs: ANSWER_TIMEOUT_MS });
  if (status !== 200) throw new Error(`it answered ${status}`);
  return parseKilled(text);
}

const MAX_SHOWN = 5;

/** "python3 (812), node (7) and 3 more": names and pids, for the owner of the sandbox. */
export function shownProcesses(killed: readonly KilledProcess[]): string {
  const shown = killed.slice(0, MAX_SHOWN).map(({ pid, name }) => `${name} (${pid})`);
  return `${shown.join(", ")}${killed.length > MAX_SHOWN ? ` and ${killed.length - MAX_SHOWN} more` : ""}`;
}

/** Throws unless `text` is a list of processes. */
export function parseKilled(text: string): KilledProcess[] {
  const { killed } = JSON.parse(text) as { killed?: unknown };
  if (!Array.isArray(killed)) throw new Error("its answer names no processes");
  return killed.map((one: Partial<Record<keyof KilledProcess, unknown>> | null) => {
    const { pid, name, bytes } = one ?? {};
    if (!Number.isSafeInteger(pid) || typeof name !== "string" || !Number.isSafeInteger(bytes)) throw new Error("its answer is malformed");
    return { pid: pid as number, name: name.slice(0, MAX_NAME_LENGTH), bytes: bytes as number };
  });
}
