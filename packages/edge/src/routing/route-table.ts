import { setTimeout as sleep } from "node:timers/promises";
import { type Client, Code, ConnectError } from "@connectrpc/connect";
import { AGENT_PORT, type SandboxId } from "@skerry/wire";
import { type RouteRefusal, RouteRefusalSchema, type RouteService } from "@skerry/wire/control";
import type { Absence, RouteAnswer, RouteTable, Visitor } from "../ports.ts";

export interface RouteTableOptions {
  /** How long an answer is used without asking again, and again after the control plane did not answer. Default 5 s. */
  readonly maxAgeMs?: number;
  /** How long the control plane is waited for where an older answer is at hand, which is used then. Default 2 s. */
  readonly patienceMs?: number;
  /** How many sandboxes are remembered. Default 10,000. */
  readonly maxEntries?: number;
  /** How long a question without a visitor may take. Default 10 s. */
  readonly askTimeoutMs?: number;
  /** How long one may take that wakes a sandbox. Default 70 s: the control plane gives up by itself before that. */
  readonly wakeTimeoutMs?: number;
  readonly now?: () => number;
}

/** Tokens have 64 characters. What is longer is not one, and would only be carried and kept in vain. */
const LONGEST_TOKEN = 256;

type Asking = Map<string, Promise<RouteAnswer>>;

/**
 * The control plane's route table, remembered for a short while. Only running sandboxes are remembered: "not running" is always
 * asked for, so that a sandbox is reachable from the moment it was created. Parallel questions about one sandbox are one call,
 * as far as they show the same for themselves. While the control plane can't be asked, what it said last is used, however old:
 * a node refuses what is not its own, and has the route forgotten.
 */
export function routeTableFrom(client: Client<typeof RouteService>, options: RouteTableOptions = {}): RouteTable {
  const maxAgeMs = options.maxAgeMs ?? 5_000;
  const maxEntries = options.maxEntries ?? 10_000;
  const patienceMs = options.patienceMs ?? 2_000;
  const now = options.now ?? Date.now;
  const known = new Map<SandboxId, { answer: RouteAnswer; until: number }>();
  const asking = new Map<SandboxId, Asking>();

  const remember = (sandboxId: SandboxId, answer: RouteAnswer) => {
    known.delete(sandboxId);
    known.set(sandboxId, { answer, until: now() + maxAgeMs });
    if (known.size > maxEntries) known.delete(known.keys().next().value as SandboxId);
  };
  const ask = (sandboxId: SandboxId, visitor: Visitor | undefined, calls: Asking): Promise<RouteAnswer> => {
    const key = keyOf(visitor);
    const call = readAnswer(client, { sandboxId, visitor, timeoutMs: timeoutOf(options, visitor) })
      .then((answer) => {
        // `forget` during the call means that this answer may be as old as the one that was wrong.
        if (asking.get(sandboxId) === calls) {
          if (answer.kind === "running") remember(sandboxId, answer);
          else known.delete(sandboxId);
        }
        return answer;
      })
      .finally(() => {
        calls.delete(key);
        if (calls.size === 0 && asking.get(sandboxId) === calls) asking.delete(sandboxId);
      });
    calls.set(key, call);
    asking.set(sandboxId, calls);
    return call;
  };

  /** The answer, or the last one where there is none now. */
  const orLast = async (call: Promise<RouteAnswer>, sandboxId: SandboxId, last: RouteAnswer): Promise<RouteAnswer> => {
    const tired = new AbortController();
    const waited = sleep(patienceMs, undefined, { signal: tired.signal }).catch(() => undefined);
    try {
      const answer = await Promise.race([call.catch(() => undefined), waited]);
      if (answer) return answer;
      // Unless it has been forgotten meanwhile.
      if (known.get(sandboxId)?.answer !== last) return await call;
      remember(sandboxId, last);
      return last;
    } finally {
      tired.abort();
    }
  };

  return {
    async find(sandboxId, visitor) {
      const entry = known.get(sandboxId);
      if (entry && entry.until > now()) return entry.answer;
      const calls: Asking = asking.get(sandboxId) ?? new Map();
      const call = calls.get(keyOf(visitor)) ?? ask(sandboxId, visitor, calls);
      return entry ? orLast(call, sandboxId, entry.answer) : call;
    },
    forget(sandboxId) {
      known.delete(sandboxId);
      asking.delete(sandboxId);
    },
  };
}

/** Visitors with the same key get the same answer: the token is asked for on the agent's port alone. */
function keyOf(visitor: Visitor | undefined): string {
  if (!visitor) return "";
  if (visitor.port !== AGENT_PORT) return "visitor";
  return `${visitor.isProbe ? "probe" : "agent"} ${tokenOf(visitor)}`;
}

function tokenOf({ accessToken }: Visitor): string {
  return accessToken.length > LONGEST_TOKEN ? "" : accessToken;
}

function timeoutOf(options: RouteTableOptions, visitor: Visitor | undefined): number {
  return visitor ? (options.wakeTimeoutMs ?? 70_000) : (options.askTimeoutMs ?? 10_000);
}

async function readAnswer(
  client: Client<typeof RouteService>,
  { sandboxId, visitor, timeoutMs }: { sandboxId: SandboxId; visitor: Visitor | undefined; timeoutMs: number },
): Promise<RouteAnswer> {
  try {
    const shown = visitor ? { wake: true, port: visitor.port, accessToken: tokenOf(visitor), probe: visitor.isProbe } : {};
    const { nodeId, nodeUrl, run } = await client.findRoute({ sandboxId, ...shown }, { timeoutMs });
    return { kind: "running", route: { nodeId, nodeUrl, run } };
  } catch (error) {
    const answer = answerFrom(ConnectError.from(error));
    if (!answer) throw error;
    return answer;
  }
}

/** Undefined: not the control plane's own word. Its refusals carry details; what a broken way to it makes of itself carries none. */
function answerFrom(error: ConnectError): RouteAnswer | undefined {
  const refusal = error.findDetails(RouteRefusalSchema)[0];
  if (error.code === Code.NotFound) return { kind: "absent", absence: absenceFrom(refusal) };
  if (!refusal) return undefined;
  switch (error.code) {
    case Code.PermissionDenied:
      return { kind: "denied" };
    case Code.Aborted:
      return { kind: "transitioning" };
    case Code.ResourceExhausted:
      return { kind: "limited", message: error.rawMessage };
    case Code.Unavailable:
      return { kind: "busy" };
    default:
      return undefined;
  }
}

/** A state that is not known here is nothing to tell clients. */
function absenceFrom(refusal: RouteRefusal | undefined): Absence {
  if (refusal?.state === "paused") return { state: "paused" };
  if (refusal?.state !== "ended") return { state: "unknown" };
  const { endReason, endedAt } = refusal;
  return { state: "ended", ...(endReason === "" ? {} : { endReason }), ...(endedAt === "" ? {} : { endedAt }) };
}
