// The guard's question to a sandbox's agent. A guest may have taken its agent over: its answer is a claim for the log, bounded.

import { request } from "node:http";
import { AGENT_PORT, AGENT_RELIEVE_PATH } from "@skerry/wire";

const ANSWER_TIMEOUT_MS = 2_000;
const MAX_ANSWER_BYTES = 64 * 1024;
const MAX_NAME_LENGTH = 64;

export interface KilledProcess {
  readonly pid: number;
  readonly name: string;
  readonly bytes: number;
}

export interface Relief {
  /** Processes that hold this much together are to be ended, the largest first. */
  readonly bytes: number;
  /** Also when all of them hold less. Otherwise the memory is on its way back already, or no process's. */
  readonly insist: boolean;
}

/** Answers with what was ended. Throws when there is no proper answer in two seconds. */
export function relieve(
  agent: { address: string; accessToken: string },
  relief: Relief | { readonly files: number },
): Promise<KilledProcess[]> {
  const body = JSON.stringify(relief);
  return new Promise((resolve, reject) => {
    const outgoing = request({
      host: agent.address,
      port: AGENT_PORT,
      path: AGENT_RELIEVE_PATH,
      method: "POST",
      agent: false,
      headers: {
        Host: "agent",
        "X-Access-Token": agent.accessToken,
        "Content-Type": "application/json",
        "Content-Length": Buffer.byteLength(body),
      },
    });
    const timer = setTimeout(() => outgoing.destroy(new Error(`no answer in ${ANSWER_TIMEOUT_MS} ms`)), ANSWER_TIMEOUT_MS);
    outgoing.once("response", (response) => {
      let text = "";
      response.setEncoding("latin1");
      response.on("data", (chunk: string) => {
        text += chunk;
        if (text.length > MAX_ANSWER_BYTES) outgoing.destroy(new Error("its answer is too long"));
      });
      response.once("end", () => {
        if (response.statusCode !== 200) reject(new Error(`it answered ${response.statusCode}`));
        else resolveParsed(text, resolve, reject);
      });
    });
    outgoing.once("upgrade", (_response, socket) => socket.destroy());
    outgoing.on("error", reject);
    outgoing.once("close", () => {
      clearTimeout(timer);
      reject(new Error("the connection ended without an answer"));
    });
    outgoing.end(body);
  });
}

function resolveParsed(text: string, resolve: (killed: KilledProcess[]) => void, reject: (error: unknown) => void): void {
  try {
    resolve(parseKilled(text));
  } catch (error) {
    reject(error);
  }
}

/** Throws when it is not a list of processes. */
export function parseKilled(text: string): KilledProcess[] {
  const { killed } = JSON.parse(text) as { killed?: unknown };
  if (!Array.isArray(killed)) throw new Error("its answer names no processes");
  return killed.map((one: Partial<Record<keyof KilledProcess, unknown>> | null) => {
    const { pid, name, bytes } = one ?? {};
    if (!Number.isSafeInteger(pid) || typeof name !== "string" || !Number.isSafeInteger(bytes)) throw new Error("its answer is malformed");
    return { pid: pid as number, name: name.slice(0, MAX_NAME_LENGTH), bytes: bytes as number };
  });
}
