import type { Duplex } from "node:stream";
import { type Logger, PlatformError, untilAborted } from "@skerry/base";
import type { Target } from "@skerry/wire";
import { type Refusal, unroutable } from "../answers/refusal.ts";
import type { RefusalLog } from "../answers/refusal-log.ts";
import type { SandboxTraffic } from "../connections/sandbox-traffic.ts";
import type { TrafficLimits } from "../connections/traffic-limits.ts";
import type { DialErrorCode } from "../errors.ts";
import type { KeptUpstream } from "../forwarding/kept-upstream.ts";
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
  readonly traffic: SandboxTraffic;
  readonly limits: TrafficLimits;
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
  /** What the client's connection has kept. Absent when the request may not use it. */
  readonly kept?: KeptUpstream | undefined;
  /** Aborted when the client has gone away, or has its response. */
  readonly signal: AbortSignal;
}

export type Upstream = Opened | { readonly kind: "refused"; readonly refusal: Refusal };

export interface Opened {
  readonly kind: "open";
  readonly stream: Duplex;
  readonly maskedHost: string | undefined;
  /** Takes the connection back after the response. Absent: it carries this request alone. */
  readonly keep?: ((stream: Duplex) => void) | undefined;
  /** Opens another connection, if this one was kept from an earlier request and breaks before the server says anything. */
  readonly reopen?: (() => Promise<Upstream>) | undefined;
}

/**
 * Looks up the sandbox's node, wakes the sandbox if the visitor may do so, and opens a stream to the port. If the dial fails, the
 * edge looks up the route once more, because the sandbox may have been paused, killed or resumed. No part of the request has been
 * sent by then, so no sandbox receives it twice.
 */
export async function openUpstream(deps: OpenDeps, call: Call): Promise<Upstream> {
  try {
    const answer = await findOpenRoute(deps, call);
    if (answer.kind !== "running") return refuseRoute(deps, call, answer);
    const barred = bar(deps, call, answer.route) ?? count(deps, call, answer.route);
    if (barred) return refused(barred);
    return (await takeKept(deps, call, answer.route)) ?? (await dialTwice(deps, call, answer.route));
  } catch (err) {
    return lookupFailed(deps, call, err);
  }
}

async function dialTwice(deps: OpenDeps, call: Call, route: Route): Promise<Upstream> {
  const { target, refusals } = call;
  const first = await tryDial(deps, route, call);
  if (first.kind === "open") return first;

  deps.routes.forget(target.sandboxId);
  const fresh = await findRoute(deps, call);
  if (fresh.kind !== "running") return refuseRoute(deps, call, fresh);
  // A node that refused the sandbox may accept it now, because a pause may have failed. Other failures would repeat in the same run.
  if (first.code !== "sandbox_gone" && isSame(fresh.route, route)) return refused(refusals.forDial(first.code));
  const barredNow = bar(deps, call, fresh.route);
  if (barredNow) return refused(barredNow);
  const second = await tryDial(deps, fresh.route, call);
  return second.kind === "open" ? second : refused(refusals.forDial(second.code));
}

/** The connection that was kept from the last request of this client to the same port, if it is still open. */
async function takeKept(deps: OpenDeps, call: Call, route: Route): Promise<Opened | undefined> {
  const { kept, target } = call;
  if (kept === undefined || speaksTls(route.ingress, target)) return undefined;
  const leadsTo = destinationOf(route, target);
  const stream = await kept.take(leadsTo);
  if (stream === undefined) return undefined;
  const reopen = () => dialTwice(deps, call, route).catch((err: unknown) => lookupFailed(deps, call, err));
  return { kind: "open", stream, maskedHost: maskedHost(route.ingress, target), keep: keepFor(kept, leadsTo), reopen };
}

/** Equal for the same port of the same run of a sandbox. */
function destinationOf({ nodeId, nodeUrl, run }: Route, { sandboxId, port }: Target): string {
  return [nodeId, nodeUrl, run, sandboxId, port].join(" ");
}

function lookupFailed({ logger }: UpstreamDeps, { target, signal }: Call, err: unknown): Upstream {
  if (!signal.aborted) logger.warn({ err, sandbox_id: target.sandboxId }, "route lookup failed");
  return refused(unroutable());
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

/** Counts the request towards the limits of its sandbox and of its group, or refuses it. */
function count({ limits, refusalLog }: OpenDeps, { target, refusals, signal, clientAddress }: Call, { group }: Route): Refusal | undefined {
  const excess = limits.take(target, group, signal);
  if (excess === undefined) return undefined;
  const who = excess.scope === "group" ? " of the team" : "";
  refusalLog.note(target, `too many ${excess.of}${who}`, clientAddress());
  return refusals.forExcess(excess);
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

type Dialled = Opened | { kind: "failed"; code: DialErrorCode };

async function tryDial(deps: OpenDeps, route: Route, call: Call): Promise<Dialled> {
  const { target, signal } = call;
  try {
    const stream = await deps.dial(route, target, signal);
    deps.traffic.follow(stream);
    const masked = maskedHost(route.ingress, target);
    if (!speaksTls(route.ingress, target)) return { kind: "open", stream, maskedHost: masked, keep: keepLater(call, route, stream) };
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

/** Undefined unless the client has just asked the same. */
function keepLater({ kept, target, signal }: Call, route: Route, stream: Duplex): Opened["keep"] {
  const leadsTo = destinationOf(route, target);
  if (kept === undefined) return undefined;
  if (!kept.isAskedAgain(leadsTo)) {
    signal.addEventListener("abort", () => kept.noteAnswer(leadsTo), { once: true });
    return undefined;
  }
  // While the connection passes from one request to the next, nobody else listens.
  stream.on("error", () => {});
  return keepFor(kept, leadsTo);
}

function keepFor(kept: KeptUpstream, leadsTo: string): (used: Duplex) => void {
  return (used) => {
    kept.noteAnswer(leadsTo);
    kept.put(used, leadsTo);
  };
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
