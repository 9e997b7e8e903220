// The node's calls to a sandbox's agent: hand over the sandbox's identity, wait until the agent listens, check its health. The node uses
// only the status of each answer, because a guest may have taken over the agent.

import { randomUUID } from "node:crypto";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { asError, errnoOf, PlatformError, type Secret } from "@skerry/base";
import { AGENT_GENERATION_PATH, GENERATION_PROGRAMS_LIMIT_MS, type SiteNetwork } from "@skerry/wire";
import { processLimit } from "../limits/process-limit.ts";
import { type AgentRequest, connectAgent, exchange } from "./exchange.ts";
import { tracedExchange } from "./traced-exchange.ts";

export interface AgentIdentity {
  readonly sandboxId: string;
  readonly templateId: string;
  readonly envVars: Readonly<Record<string, string>>;
  readonly accessToken: string;
  readonly defaultUser: string;
  readonly defaultWorkdir: string;
  readonly memoryMb: number;
  /** See generation.ts; undefined for a sandbox in the warm pool, and in records of versions without generations. */
  readonly generation?: string;
}

/**
 * Intervals between attempts to connect to the agent. Each attempt takes CPU time from the start itself: a whole request every 3 ms made a
 * create on two busy cores a third slower.
 */
const FIRST_LOOK_MS = 20;
const LOOK_MS = 10;
const LOOK_RESTORED_MS = 4;
const ANSWER_TIMEOUT_MS = 5_000;
const HOOKS_TIMEOUT_MS = GENERATION_PROGRAMS_LIMIT_MS + 2_000;

const HOOKS_RUN = 202;
const INITIALISED = [204, HOOKS_RUN];
const HEALTH: AgentRequest = { method: "GET", path: "/health" };

export interface AgentWait {
  readonly address: string;
  /** The agent was just started, so it does not listen yet. A restored agent does. */
  readonly isNew: boolean;
  readonly timeoutMs: number;
  /** Ends the wait early when the sandbox has ended. */
  readonly isAlive: () => boolean;
}

export interface Handshake extends AgentWait {
  readonly identity: AgentIdentity;
  /** The token that the agent requires now; "" if it was never given one. */
  readonly currentToken: string;
  /** How the sandbox reaches the internet; undefined to leave that as it is. See site-network.ts. */
  readonly site: Secret<SiteNetwork> | undefined;
}

export interface Initialised {
  /** The agent is running the guest's generation programs; `untilHooksEnded` waits for them. */
  readonly hooksRun: boolean;
}

/** Waits until the agent answers, and hands over the sandbox's identity. Throws PlatformError("agent_failed"). */
export async function initialiseAgent(handshake: Handshake): Promise<Initialised> {
  const { address, identity, currentToken, site, isAlive } = handshake;
  const lifecycleId = randomUUID();
  let status = 0;
  await whenListening(handshake, async (socket) => {
    ({ status } = await tracedExchange(socket, initRequest(identity, { currentToken, lifecycleId, site }), {
      timeoutMs: ANSWER_TIMEOUT_MS,
    }));
    if (!INITIALISED.includes(status))
      throw new PlatformError("agent_failed", `the agent at ${address} refused its identity with status ${status}`);
  });
  if (!isAlive()) throw new PlatformError("agent_failed", "the sandbox ended as soon as its agent answered");
  return { hooksRun: status === HOOKS_RUN };
}

/** Tells a running agent how its sandbox reaches the internet. Rejects when it does not accept that. */
export async function tellSite(
  address: string,
  { accessToken, site }: { readonly accessToken: string; readonly site: Secret<SiteNetwork> },
) {
  const body = JSON.stringify({ accessToken, ...siteField(site) });
  const asked: AgentRequest = { method: "POST", path: "/init", body, token: accessToken };
  const { status } = await exchange(await connectAgent(address), asked, { timeoutMs: ANSWER_TIMEOUT_MS });
  if (!INITIALISED.includes(status)) throw new PlatformError("agent_failed", `the agent at ${address} answered ${status}`);
}

/** Waits until the generation programs of a sandbox have ended or reached their time limit. Never throws. */
export async function untilHooksEnded(address: string, token: string): Promise<void> {
  try {
    const socket = await connectAgent(address);
    await exchange(socket, { method: "GET", path: AGENT_GENERATION_PATH, token }, { timeoutMs: HOOKS_TIMEOUT_MS });
  } catch {
    // The guest's programs may fail; that is no failure of the sandbox.
  }
}

/** Waits until a new agent answers, and tells it what does not depend on its sandbox. Throws PlatformError("agent_failed"). */
export async function awaitAgent(
  wait: AgentWait,
  { site, memoryMb }: { readonly site: Handshake["site"]; readonly memoryMb?: number },
): Promise<void> {
  const told = { ...siteField(site), ...(memoryMb === undefined ? {} : limitFields(memoryMb)) };
  const isTold = Object.keys(told).length > 0;
  const first: AgentRequest = isTold ? { method: "POST", path: "/init", body: JSON.stringify(told) } : HEALTH;
  await whenListening(wait, async (socket) => {
    const { status } = await exchange(socket, first, { timeoutMs: ANSWER_TIMEOUT_MS });
    if (isTold && !INITIALISED.includes(status))
      throw new PlatformError("agent_failed", `the agent at ${wait.address} refused its settings with status ${status}`);
  });
}

/** Whether the agent answers a health check within `timeoutMs`. Never throws. */
export async function isAgentHealthy(address: string, timeoutMs: number): Promise<boolean> {
  try {
    const { status } = await exchange(await connectAgent(address, timeoutMs), HEALTH, { timeoutMs });
    return status < 500;
  } catch {
    return false;
  }
}

async function whenListening(wait: AgentWait, talk: (socket: Socket) => Promise<void>): Promise<void> {
  const deadline = performance.now() + wait.timeoutMs;
  if (wait.isNew) await sleep(FIRST_LOOK_MS);
  for (;;) {
    try {
      return await talk(await connectAgent(wait.address));
    } catch (error) {
      if (error instanceof PlatformError) throw error;
      // Nothing listens yet. Any other failure, such as a reset while the agent starts, is retried until the deadline too.
      const why = wait.isAlive() ? undefined : "the sandbox ended before its agent answered";
      if (why !== undefined || performance.now() > deadline) {
        const late = `the agent did not answer in ${wait.timeoutMs} ms (${errnoOf(error) ?? "no error code"})`;
        throw new PlatformError("agent_failed", why ?? late, { cause: asError(error) });
      }
    }
    await sleep(wait.isNew ? LOOK_MS : LOOK_RESTORED_MS);
  }
}

function limitFields(memoryMb: number): { memoryMB: number; maxProcesses: number } {
  return { memoryMB: memoryMb, maxProcesses: processLimit(memoryMb) };
}

function siteField(site: Handshake["site"]): { site?: SiteNetwork } {
  return site ? { site: site.reveal() } : {};
}

function initRequest(
  identity: AgentIdentity,
  { currentToken, lifecycleId, site }: Pick<Handshake, "currentToken" | "site"> & { readonly lifecycleId: string },
): AgentRequest {
  const { memoryMb, ...about } = identity;
  const when = { lifecycleID: lifecycleId, timestamp: new Date().toISOString() };
  const body = JSON.stringify({ ...about, ...limitFields(memoryMb), ...when, ...siteField(site) });
  return { method: "POST", path: "/init", body, token: currentToken };
}
