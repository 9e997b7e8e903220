import type { Duplex } from "node:stream";
import { type Logger, PlatformError, untilAborted } from "@skerry/base";
import type { Target } from "@skerry/wire";
import { type Refusal, unroutable } from "../answers/refusal.ts";
import type { DialErrorCode } from "../errors.ts";
import type { Dial, Route, RouteAnswer, RouteTable, Visitor } from "../ports.ts";
import type { UpstreamRefusals } from "./upstream-refusals.ts";

export interface UpstreamDeps {
  readonly routes: RouteTable;
  readonly dial: Dial;
  readonly logger: Logger;
}

export interface Call {
  readonly target: Target;
  /** Absent when the request may wake no sandbox. */
  readonly visitor?: Visitor;
  readonly refusals: UpstreamRefusals;
  /** Aborted when the client has gone away. */
  readonly signal: AbortSignal;
}

export type Upstream = { readonly kind: "open"; readonly stream: Duplex } | { readonly kind: "refused"; readonly refusal: Refusal };

/**
 * Looks up the sandbox's node, wakes the sandbox if the visitor may do so, and opens a stream to the port. If the dial fails, the
 * edge looks up the route once more, because the sandbox may have been paused, killed or resumed. No part of the request has been
 * sent by then, so no sandbox receives it twice.
 */
export async function openUpstream(deps: UpstreamDeps, call: Call): Promise<Upstream> {
  const { target, refusals, signal } = call;
  try {
    const answer = await findRoute(deps, call);
    if (answer.kind !== "running") return refused(refusals.forRoute(answer));
    const first = await tryDial(deps, answer.route, call);
    if (first.kind === "open") return first;

    deps.routes.forget(target.sandboxId);
    const fresh = await findRoute(deps, call);
    if (fresh.kind !== "running") return refused(refusals.forRoute(fresh));
    // A node that refused the sandbox may accept it now, because a pause may have failed. Other failures would repeat in the same run.
    if (first.code !== "sandbox_gone" && isSame(fresh.route, answer.route)) return refused(refusals.forDial(first.code));
    const second = await tryDial(deps, fresh.route, call);
    return second.kind === "open" ? second : refused(refusals.forDial(second.code));
  } catch (err) {
    if (!signal.aborted) deps.logger.warn({ err, sandbox_id: target.sandboxId }, "route lookup failed");
    return refused(unroutable());
  }
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

/** Stops waiting when the client disconnects, which frees the memory of the request. The lookup goes on for other clients. */
function findRoute({ routes }: UpstreamDeps, { target, visitor, signal }: Call): Promise<RouteAnswer> {
  return untilAborted(routes.find(target.sandboxId, visitor), signal);
}

type Dialled = { kind: "open"; stream: Duplex } | { kind: "failed"; code: DialErrorCode };

async function tryDial(deps: UpstreamDeps, route: Route, { target, signal }: Call): Promise<Dialled> {
  try {
    return { kind: "open", stream: await deps.dial(route, target, signal) };
  } catch (err) {
    const code = err instanceof PlatformError ? err.code : undefined;
    if (code === "sandbox_gone" || code === "port_closed") return { kind: "failed", code };
    if (!signal.aborted) {
      deps.logger.warn({ err, sandbox_id: target.sandboxId, node_id: route.nodeId }, "dialling the node failed");
    }
    return { kind: "failed", code: "node_unreachable" };
  }
}

function isSame(one: Route, other: Route): boolean {
  return one.nodeId === other.nodeId && one.nodeUrl === other.nodeUrl && one.run === other.run;
}

function refused(refusal: Refusal): Upstream {
  return { kind: "refused", refusal };
}
