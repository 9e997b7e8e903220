// The calls that the node makes to a sandbox's agent: handing over its identity, and asking whether it is there. Answers by
// a guest are not trusted: status only, body dropped.

import { randomUUID } from "node:crypto";
import { request } from "node:http";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { asError, errnoOf, PlatformError } from "@skerry/base";
import { AGENT_GENERATION_PATH, AGENT_PORT, GENERATION_PROGRAMS_LIMIT_MS } from "@skerry/wire";
import { processLimit } from "../limits/process-limit.ts";

export interface AgentIdentity {
  readonly sandboxId: string;
  readonly templateId: string;
  readonly envVars: Readonly<Record<string, string>>;
  readonly accessToken: string;
  readonly defaultUser: string;
  readonly defaultWorkdir: string;
  readonly memoryMb: number;
  /** See generation.ts; undefined for one that waits in the pool, and in records of before there was one. */
  readonly generation?: string;
}

/**
 * How often it is looked whether the agent listens. Each look costs the sandbox and us processor time that its start needs:
 * asking every 3 ms with whole requests made a create on two busy cores a third slower.
 */
const FIRST_LOOK_MS = 20;
const LOOK_MS = 10;
const LOOK_RESTORED_MS = 4;
const CONNECT_TIMEOUT_MS = 2_000;
const ANSWER_TIMEOUT_MS = 5_000;
const HOOKS_TIMEOUT_MS = GENERATION_PROGRAMS_LIMIT_MS + 2_000;

const HOOKS_RUN = 202;
const INITIALISED = [204, HOOKS_RUN];

export interface AgentWait {
  readonly address: string;
  /** A new agent needs some time until it listens; one that was brought back listens already. */
  readonly isNew: boolean;
  readonly timeoutMs: number;
  /** Ends the wait early when the sandbox has ended. */
  readonly isAlive: () => boolean;
}

export interface Handshake extends AgentWait {
  readonly identity: AgentIdentity;
  /** What the agent asks for now: "" when it was never told a token. */
  readonly currentToken: string;
}

export interface Initialised {
  /** It runs programs because its generation has changed: `untilHooksEnded` waits for them. */
  readonly hooksRun: boolean;
}

/** Waits until the agent answers, and tells it who it is. Throws PlatformError("agent_failed"). */
export async function initialiseAgent(handshake: Handshake): Promise<Initialised> {
  const { address, identity, currentToken, isAlive } = handshake;
  const lifecycleId = randomUUID();
  let status = 0;
  await whenListening(handshake, async (socket) => {
    status = await exchange(socket, initRequest(identity, { currentToken, lifecycleId }));
    if (!INITIALISED.includes(status))
      throw new PlatformError("agent_failed", `the agent at ${address} refused its identity with status ${status}`);
  });
  if (!isAlive()) throw new PlatformError("agent_failed", "the sandbox ended as soon as its agent answered");
  return { hooksRun: status === HOOKS_RUN };
}

/** Waits for the programs that a sandbox runs after a change of its generation, for as long as they may take. Never throws. */
export async function untilHooksEnded(address: string, token: string): Promise<void> {
  try {
    const socket = await openConnection(address);
    await exchange(socket, { method: "GET", path: AGENT_GENERATION_PATH, ...(token === "" ? {} : { token }) }, HOOKS_TIMEOUT_MS);
  } catch {
    // They are the guest's own, and so is what becomes of them.
  }
}

/** Waits until a new agent listens and answers, and tells it nothing. Throws PlatformError("agent_failed"). */
export async function awaitAgent(wait: AgentWait): Promise<void> {
  await whenListening(wait, async (socket) => {
    await exchange(socket, { method: "GET", path: "/health" });
  });
}

/** Whether the agent answers at all within a time. */
export async function isAgentHealthy(address: string, timeoutMs: number): Promise<boolean> {
  try {
    const socket = await openConnection(address, timeoutMs);
    return (await exchange(socket, { method: "GET", path: "/health" }, timeoutMs)) < 500;
  } catch {
    return false;
  }
}

async function whenListening(wait: AgentWait, talk: (socket: Socket) => Promise<void>): Promise<void> {
  const deadline = performance.now() + wait.timeoutMs;
  if (wait.isNew) await sleep(FIRST_LOOK_MS);
  for (;;) {
    try {
      return await talk(await openConnection(wait.address));
    } catch (error) {
      if (error instanceof PlatformError) throw error;
      // Nothing listens yet. Everything else (a reset while it starts) is the same until the deadline.
      const why = wait.isAlive() ? undefined : "the sandbox ended before its agent answered";
      if (why !== undefined || performance.now() > deadline) {
        const late = `the agent did not answer in ${wait.timeoutMs} ms (${errnoOf(error) ?? "no error code"})`;
        throw new PlatformError("agent_failed", why ?? late, { cause: asError(error) });
      }
    }
    await sleep(wait.isNew ? LOOK_MS : LOOK_RESTORED_MS);
  }
}

function openConnection(address: string, timeoutMs = CONNECT_TIMEOUT_MS): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: address, port: AGENT_PORT, noDelay: true });
    socket.setTimeout(timeoutMs, () => socket.destroy(new Error(`no connection in ${timeoutMs} ms`)));
    socket.once("error", reject);
    socket.once("connect", () => {
      socket.setTimeout(0);
      socket.removeListener("error", reject);
      resolve(socket);
    });
  });
}

interface AgentRequest {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body?: string;
  readonly token?: string;
}

function initRequest(
  identity: AgentIdentity,
  { currentToken, lifecycleId }: { readonly currentToken: string; readonly lifecycleId: string },
): AgentRequest {
  const { memoryMb, ...about } = identity;
  const when = { lifecycleID: lifecycleId, timestamp: new Date().toISOString() };
  const limits = { memoryMB: memoryMb, maxProcesses: processLimit(memoryMb) };
  const body = JSON.stringify({ ...about, ...limits, ...when });
  return { method: "POST", path: "/init", body, ...(currentToken === "" ? {} : { token: currentToken }) };
}

/** Answers with the status. Settles whatever the guest does: an upgrade, half an answer and silence are errors like any other. */
function exchange(socket: Socket, { method, path, body, token }: AgentRequest, timeoutMs = ANSWER_TIMEOUT_MS): Promise<number> {
  return new Promise((resolve, reject) => {
    const outgoing = request({
      createConnection: () => socket,
      path,
      method,
      headers: {
        Host: "agent",
        ...(body === undefined ? {} : { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(body) }),
        ...(token === undefined ? {} : { "X-Access-Token": token }),
      },
    });
    const timer = setTimeout(() => outgoing.destroy(new Error(`no answer in ${timeoutMs} ms`)), timeoutMs);
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
