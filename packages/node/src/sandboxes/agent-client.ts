// The one call that the node makes to a sandbox's agent: handing over its identity. Answers by a guest are not trusted:
// status only, body dropped.

import { request } from "node:http";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { asError, errnoOf, PlatformError } from "@skerry/base";
import { AGENT_PORT } from "@skerry/wire";

export interface AgentIdentity {
  readonly sandboxId: string;
  readonly templateId: string;
  readonly envVars: Readonly<Record<string, string>>;
  readonly accessToken: string;
  readonly defaultUser: string;
  readonly defaultWorkdir: string;
  readonly memoryMb: number;
}

/**
 * How often it is looked whether the agent listens. Each look costs the sandbox and us processor time that its start needs:
 * asking every 3 ms with whole requests made a create on two busy cores a third slower.
 */
const FIRST_LOOK_MS = 20;
const LOOK_MS = 10;
const CONNECT_TIMEOUT_MS = 2_000;
const ANSWER_TIMEOUT_MS = 5_000;

/**
 * Waits until the agent answers, and initialises it. `isAlive` ends the wait early when the sandbox has ended.
 * Throws PlatformError("agent_failed").
 */
export async function initialiseAgent(options: {
  address: string;
  identity: AgentIdentity;
  timeoutMs: number;
  isAlive: () => boolean;
}): Promise<void> {
  const deadline = Date.now() + options.timeoutMs;
  await sleep(FIRST_LOOK_MS);
  for (;;) {
    try {
      const status = await postIdentity(await openConnection(options.address), options.identity);
      if (status === 204) return;
      throw new PlatformError("agent_failed", `the agent refused its identity with status ${status}`);
    } catch (error) {
      if (error instanceof PlatformError) throw error;
      // Nothing listens yet. Everything else (a reset while it starts) is the same until the deadline.
      const why = options.isAlive() ? undefined : "the sandbox ended before its agent answered";
      if (why !== undefined || Date.now() > deadline) {
        const late = `the agent did not answer in ${options.timeoutMs} ms (${errnoOf(error) ?? "no error code"})`;
        throw new PlatformError("agent_failed", why ?? late, { cause: asError(error) });
      }
    }
    await sleep(LOOK_MS);
  }
}

function openConnection(address: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: address, port: AGENT_PORT, noDelay: true });
    socket.setTimeout(CONNECT_TIMEOUT_MS, () => socket.destroy(new Error(`no connection in ${CONNECT_TIMEOUT_MS} ms`)));
    socket.once("error", reject);
    socket.once("connect", () => {
      socket.setTimeout(0);
      socket.removeListener("error", reject);
      resolve(socket);
    });
  });
}

/** Answers with the status. Settles whatever the guest does: an upgrade, half an answer and silence are errors like any other. */
function postIdentity(socket: Socket, identity: AgentIdentity): Promise<number> {
  const { envVars, accessToken, defaultUser, defaultWorkdir, sandboxId, templateId, memoryMb } = identity;
  const timestamp = new Date().toISOString();
  const fields = { envVars, accessToken, defaultUser, defaultWorkdir, sandboxId, templateId, memoryMB: memoryMb, timestamp };
  const body = JSON.stringify(fields);
  return new Promise((resolve, reject) => {
    const outgoing = request({
      createConnection: () => socket,
      path: "/init",
      method: "POST",
      headers: { Host: "agent", "Content-Type": "application/json", "Content-Length": Buffer.byteLength(body) },
    });
    const timer = setTimeout(() => outgoing.destroy(new Error(`no answer in ${ANSWER_TIMEOUT_MS} ms`)), ANSWER_TIMEOUT_MS);
    outgoing.once("response", (response) => {
      response.destroy();
      resolve(response.statusCode ?? 0);
    });
    outgoing.once("upgrade", (_response, upgraded) => {
      upgraded.destroy();
      reject(new Error("the agent's port answered with an upgrade"));
    });
    outgoing.on("error", reject);
    outgoing.once("close", () => {
      clearTimeout(timer);
      reject(new Error("the connection ended without an answer"));
    });
    outgoing.end(body);
  });
}
