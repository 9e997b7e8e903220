import { setTimeout as sleep } from "node:timers/promises";
import { type Client, Code, ConnectError } from "@connectrpc/connect";
import { AGENT_PORT, type SandboxId } from "@skerry/wire";
import { type Ingress as IngressMessage, type RouteRefusal, RouteRefusalSchema, type RouteService } from "@skerry/wire/control";
import type { Absence, Ingress, RouteAnswer, RouteTable, Visitor } from "../ports.ts";

export interface RouteTableOptions {
  /** How long a route is used without a new lookup. Also the interval between lookups while the control plane does not answer. Default 5 s. */
  readonly maxAgeMs?: number;
  /** How long a lookup may take before the edge uses an expired route instead. Default 2 s. */
  readonly patienceMs?: number;
  /** Maximum number of cached routes. Default 10,000. */
  readonly maxEntries?: number;
  /** Timeout of a lookup without a visitor. Default 10 s. */
  readonly askTimeoutMs?: number;
  /** Timeout of a lookup that may wake a sandbox. Default 70 s, which is longer than the control plane's own limit. */
  readonly wakeTimeoutMs?: number;
  readonly now?: () => number;
}

/** Tokens have 64 characters. The edge neither sends nor stores longer values. */
const LONGEST_TOKEN = 256;

type Asking = Map<string, Promise<RouteAnswer>>;

/**
 * Caches the routes of the control plane.
 *
 * - Only routes of running sandboxes are cached, so that a sandbox is reachable as soon as it was created.
 * - Parallel lookups of one sandbox share a call if their visitors have the same rights.
 * - While the control plane does not answer, cached routes are used however old they are. A node refuses sandboxes that it does not
 *   have, and the edge then discards the route.
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
        // After `forget` during the call, this route may be as stale as the wrong one.
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

  /** Returns the result of the call, or the last answer if the call fails or takes too long. */
  const orLast = async (call: Promise<RouteAnswer>, sandboxId: SandboxId, last: RouteAnswer): Promise<RouteAnswer> => {
    const tired = new AbortController();
    const waited = sleep(patienceMs, undefined, { signal: tired.signal }).catch(() => undefined);
    try {
      const answer = await Promise.race([call.catch(() => undefined), waited]);
      if (answer) return answer;
      // The last answer may have been discarded in the meantime.
      if (known.get(sandboxId)?.answer !== last) return await call;
      remember(sandboxId, last);
      return last;
    } finally {
      tired.abort();
    }
  };

  return {
    async find(sandboxId, visitor, { isFresh = false } = {}) {
      const entry = known.get(sandboxId);
      if (entry && !isFresh && entry.until > now()) return entry.answer;
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

/** Visitors with the same key get the same answer. The control plane checks one token for the agent's port and another for all others. */
function keyOf(visitor: Visitor | undefined): string {
  if (!visitor) return "";
  if (visitor.port !== AGENT_PORT) return `visitor ${tokenFrom(visitor.trafficToken)} ${linkKeyOf(visitor)}`;
  return `${visitor.isProbe ? "probe" : "agent"} ${tokenFrom(visitor.accessToken)}`;
}

/** A link leads to one port. */
function linkKeyOf({ port, link }: Visitor): string {
  return link ? `${port} ${link.linkId} ${Buffer.from(link.digest).toString("base64")}` : "";
}

function tokenFrom(text: string): string {
  return text.length > LONGEST_TOKEN ? "" : text;
}

function timeoutOf(options: RouteTableOptions, visitor: Visitor | undefined): number {
  return visitor ? (options.wakeTimeoutMs ?? 70_000) : (options.askTimeoutMs ?? 10_000);
}

async function readAnswer(
  client: Client<typeof RouteService>,
  { sandboxId, visitor, timeoutMs }: { sandboxId: SandboxId; visitor: Visitor | undefined; timeoutMs: number },
): Promise<RouteAnswer> {
  try {
    const shown = visitor ? shownBy(visitor) : {};
    const { nodeId, nodeUrl, run, limitGroup, ingress } = await client.findRoute(
      { sandboxId, obeysIngress: true, ...shown },
      { timeoutMs },
    );
    const group = limitGroup === "" ? {} : { group: limitGroup };
    return { kind: "running", route: { nodeId, nodeUrl, run, ...group, ...(ingress && { ingress: ingressFrom(ingress) }) } };
  } catch (error) {
    const answer = answerFrom(ConnectError.from(error));
    if (!answer) throw error;
    return answer;
  }
}

function shownBy({ port, accessToken, trafficToken, link, isProbe }: Visitor) {
  return {
    ...(link && { link: { linkId: link.linkId, tokenSha256: new Uint8Array(link.digest) } }),
    wake: true,
    port,
    accessToken: tokenFrom(accessToken),
    trafficToken: tokenFrom(trafficToken),
    probe: isProbe,
  };
}

function ingressFrom({ trafficTokenSha256, hostTemplate, tlsPorts }: IngressMessage): Ingress {
  return {
    ...(trafficTokenSha256.length === 0 ? {} : { tokenDigest: trafficTokenSha256 }),
    ...(hostTemplate === "" ? {} : { hostTemplate }),
    tlsPorts: new Set(tlsPorts),
  };
}

/** Returns undefined for an error that the control plane did not send: its refusals have details, and transport errors have none. */
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

/** Clients are not told about states that this version does not know. */
function absenceFrom(refusal: RouteRefusal | undefined): Absence {
  if (refusal?.state === "paused") return { state: "paused" };
  if (refusal?.state !== "ended") return { state: "unknown" };
  const { endReason, endedAt } = refusal;
  return { state: "ended", ...(endReason === "" ? {} : { endReason }), ...(endedAt === "" ? {} : { endedAt }) };
}
