import type { Duplex } from "node:stream";
import { type Logger, PlatformError, untilAborted } from "@skerry/base";
import type { Target } from "@skerry/wire";
import { type Refusal, unroutable } from "../answers/refusal.ts";
import type { RefusalLog } from "../answers/refusal-log.ts";
import type { RequestRate } from "../connections/request-rate.ts";
import type { SandboxConnections } from "../connections/sandbox-connections.ts";
import type { DialErrorCode } from "../errors.ts";
import { maskedHost } from "../ingress/masked-host.ts";
import { openTls, speaksTls } from "../ingress/open-tls.ts";
import { type TokenFault, tokenFault } from "../ingress/traffic-token.ts";
import { type LinkEntry, noteLink } from "../links/enter.ts";
import type { Dial, Route, RouteAnswer, RouteTable, Visitor } from "../ports.ts";
import type { UpstreamRefusals } from "./upstream-refusals.ts";

export interface UpstreamDeps {
  readonly routes: RouteTable;
  readonly dial: Dial;
  readonly logger: Logger;
}

export interface OpenDeps extends UpstreamDeps {
  readonly connections: SandboxConnections;
  readonly rate: RequestRate;
  readonly refusalLog: RefusalLog;
}

export interface Call {
  readonly target: Target;
  /** As received; undefined when absent. */
  readonly host: string | undefined;
  /** As received; "" when absent. */
  readonly trafficToken: string;
  /** What the link of the request is good for. */
  readonly link?: Exclude<LinkEntry, { kind: "refused" }> | undefined;
  readonly clientAddress: () => string;
  /** Absent when the request may wake no sandbox. */
  readonly visitor?: Visitor;
  readonly refusals: UpstreamRefusals;
  /** Aborted when the client has gone away, or has its response. */
  readonly signal: AbortSignal;
}

export type Upstream =
  | { readonly kind: "open"; readonly stream: Duplex; readonly maskedHost: string | undefined }
  | { readonly kind: "refused"; readonly refusal: Refusal };

/**
 * Looks up the sandbox's node, wakes the sandbox if the visitor may do so, and opens a stream to the port. If the dial fails, the
 * edge looks up the route once more, because the sandbox may have been paused, killed or resumed. No part of the request has been
 * sent by then, so no sandbox receives it twice.
 */
export async function openUpstream(deps: OpenDeps, call: Call): Promise<Upstream> {
  const { target, refusals, signal } = call;
  try {
    const answer = await findOpenRoute(deps, call);
    if (answer.kind !== "running") return refuseRoute(deps, call, answer);
    const barred = bar(deps, call, answer.route) ?? count(deps, call);
    if (barred) return refused(barred);
    const first = await tryDial(deps, answer.route, call);
    if (first.kind === "open") return first;

    deps.routes.forget(target.sandboxId);
    const fresh = await findRoute(deps, call);
    if (fresh.kind !== "running") return refuseRoute(deps, call, fresh);
    // A node that refused the sandbox may accept it now, because a pause may have failed. Other failures would repeat in the same run.
    if (first.code !== "sandbox_gone" && isSame(fresh.route, answer.route)) return refused(refusals.forDial(first.code));
    const barredNow = bar(deps, call, fresh.route);
    if (barredNow) return refused(barredNow);
    const second = await tryDial(deps, fresh.route, call);
    return second.kind === "open" ? second : refused(refusals.forDial(second.code));
  } catch (err) {
    if (!signal.aborted) deps.logger.warn({ err, sandbox_id: target.sandboxId }, "route lookup failed");
    return refused(unroutable());
  }
}

function refuseRoute(deps: OpenDeps, call: Call, answer: Exclude<RouteAnswer, { kind: "running" }>): Upstream {
  if (answer.kind === "denied") deps.refusalLog.note(call.target, "wake denied", call.clientAddress());
  return refused(call.refusals.forRoute(answer));
}

/** Refuses a request that has neither the traffic token that its sandbox requires nor a link. */
function bar(deps: OpenDeps, call: Call, route: Route): Refusal | undefined {
  const { target, link, refusals, clientAddress } = call;
  const fault = entryFault(call, route);
  if (fault === undefined) return undefined;
  if (fault === "missing" && link?.kind === "closed") {
    noteLink(deps.refusalLog, { target, ...link }, clientAddress());
    return refusals.forLink(link.fault);
  }
  deps.refusalLog.note(target, `token ${fault}`, clientAddress());
  return refusals.forToken(fault);
}

/** A valid link is as good as the traffic token. */
function entryFault({ target, trafficToken, link }: Call, { ingress }: Route): TokenFault | undefined {
  return link?.kind === "open" ? undefined : tokenFault(ingress, target, trafficToken);
}

/** Counts the request towards the limits of its sandbox, or refuses it. */
function count({ connections, rate, refusalLog }: OpenDeps, { target, refusals, signal, clientAddress }: Call): Refusal | undefined {
  if (!rate.take(target)) {
    refusalLog.note(target, "too many requests", clientAddress());
    return refusals.forRate(rate.perSecond);
  }
  if (connections.take(target, signal)) return undefined;
  refusalLog.note(target, "too many connections", clientAddress());
  return refusals.forConnections(connections.limit);
}

/** Returns the response for a client whose stream broke before the sandbox responded. Wakes nothing: the sandbox may have the request. */
export async function explainFailure(deps: UpstreamDeps, { target, refusals }: Pick<Call, "target" | "refusals">): Promise<Refusal> {
  deps.routes.forget(target.sandboxId);
  try {
    const answer = await deps.routes.find(target.sandboxId);
    return answer.kind === "running" ? refusals.forDial("port_closed") : refusals.forRoute(answer);
  } catch (err) {
    deps.logger.warn({ err, sandbox_id: target.sandboxId }, "route lookup failed");
    return unroutable();
  }
}

/**
 * Nobody is asked for the token of a sandbox that has ended: a known route that would refuse the request is confirmed. All such requests of
 * a sandbox share a call, because they name no visitor. So a flood of wrong tokens makes at most one call at a time.
 */
async function findOpenRoute(deps: UpstreamDeps, call: Call): Promise<RouteAnswer> {
  const answer = await findRoute(deps, call);
  if (answer.kind !== "running" || !entryFault(call, answer.route)) return answer;
  const confirmed = await untilAborted(deps.routes.find(call.target.sandboxId, undefined, { isFresh: true }), call.signal);
  return confirmed.kind === "running" ? confirmed : findRoute(deps, call);
}

/** Stops waiting when the client disconnects, which frees the memory of the request. The lookup goes on for other clients. */
function findRoute({ routes }: UpstreamDeps, { target, visitor, signal }: Call): Promise<RouteAnswer> {
  return untilAborted(routes.find(target.sandboxId, visitor), signal);
}

type Dialled = Extract<Upstream, { kind: "open" }> | { kind: "failed"; code: DialErrorCode };

async function tryDial(deps: UpstreamDeps, route: Route, call: Call): Promise<Dialled> {
  const { target, signal } = call;
  try {
    const stream = await deps.dial(route, target, signal);
    const masked = maskedHost(route.ingress, target);
    if (!speaksTls(route.ingress, target)) return { kind: "open", stream, maskedHost: masked };
    return { kind: "open", stream: await secured(deps, stream, { ...call, host: masked ?? call.host }), maskedHost: masked };
  } catch (err) {
    const code = err instanceof PlatformError ? err.code : undefined;
    if (code === "sandbox_gone" || code === "port_closed") return { kind: "failed", code };
    if (!signal.aborted) {
      deps.logger.warn({ err, sandbox_id: target.sandboxId, node_id: route.nodeId }, "dialling the node failed");
    }
    return { kind: "failed", code: "node_unreachable" };
  }
}

/** A server that does not complete the handshake counts as a closed port. */
async function secured({ logger }: UpstreamDeps, stream: Duplex, { target, host, signal }: Call): Promise<Duplex> {
  try {
    return await openTls(stream, { host, signal });
  } catch (cause) {
    logger.info({ err: cause, sandbox_id: target.sandboxId, port: target.port }, "the TLS handshake with a sandbox failed");
    throw new PlatformError("port_closed", "the server does not speak TLS", { cause });
  }
}

function isSame(one: Route, other: Route): boolean {
  return one.nodeId === other.nodeId && one.nodeUrl === other.nodeUrl && one.run === other.run;
}

function refused(refusal: Refusal): Upstream {
  return { kind: "refused", refusal };
}
