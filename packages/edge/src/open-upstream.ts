import type { Duplex } from "node:stream";
import { type Logger, PlatformError } from "@skerry/base";
import type { Target } from "@skerry/wire";
import type { Dial, Route, RouteTable } from "./ports.ts";
import { portClosed, type Refusal, sandboxNotFound, unroutable } from "./refusal.ts";

export interface UpstreamDeps {
  readonly routes: RouteTable;
  readonly dial: Dial;
  readonly logger: Logger;
}

export type Upstream = { readonly kind: "open"; readonly stream: Duplex } | { readonly kind: "refused"; readonly refusal: Refusal };

/**
 * Finds the sandbox's node and opens a stream to the port. When the node does not know the sandbox, or does not answer,
 * the route is read once more: the sandbox may have been killed, or have moved.
 */
export async function openUpstream(deps: UpstreamDeps, target: Target, signal: AbortSignal): Promise<Upstream> {
  try {
    const route = await deps.routes.find(target.sandboxId);
    if (!route) return refused(sandboxNotFound(target));
    const first = await tryDial(deps, { route, target, signal });
    if (first.kind === "open") return first;
    if (first.code === "port_closed") return refused(portClosed(target));

    deps.routes.forget(target.sandboxId);
    const fresh = await deps.routes.find(target.sandboxId);
    if (!fresh) return refused(sandboxNotFound(target));
    if (fresh.nodeId === route.nodeId && fresh.nodeUrl === route.nodeUrl) return refused(refusalFor(first.code, target));
    const second = await tryDial(deps, { route: fresh, target, signal });
    return second.kind === "open" ? second : refused(refusalFor(second.code, target));
  } catch (err) {
    if (!signal.aborted) deps.logger.warn({ err, sandbox_id: target.sandboxId }, "finding a sandbox's node failed");
    return refused(unroutable());
  }
}

/** What to say about a sandbox whose stream broke before it answered. */
export async function explainFailure(deps: UpstreamDeps, target: Target): Promise<Refusal> {
  deps.routes.forget(target.sandboxId);
  try {
    return (await deps.routes.find(target.sandboxId)) ? portClosed(target) : sandboxNotFound(target);
  } catch (err) {
    deps.logger.warn({ err, sandbox_id: target.sandboxId }, "finding a sandbox's node failed");
    return unroutable();
  }
}

type Dialled = { kind: "open"; stream: Duplex } | { kind: "failed"; code: "sandbox_gone" | "port_closed" | "node_unreachable" };

async function tryDial(deps: UpstreamDeps, call: { route: Route; target: Target; signal: AbortSignal }): Promise<Dialled> {
  const { route, target, signal } = call;
  try {
    return { kind: "open", stream: await deps.dial(route, target, signal) };
  } catch (err) {
    const code = err instanceof PlatformError ? err.code : undefined;
    if (code === "sandbox_gone" || code === "port_closed") return { kind: "failed", code };
    if (!signal.aborted) {
      deps.logger.warn({ err, sandbox_id: target.sandboxId, node_id: route.nodeId }, "dialling a node failed");
    }
    return { kind: "failed", code: "node_unreachable" };
  }
}

function refusalFor(code: "sandbox_gone" | "port_closed" | "node_unreachable", target: Target): Refusal {
  switch (code) {
    case "sandbox_gone":
      return sandboxNotFound(target);
    case "port_closed":
      return portClosed(target);
    case "node_unreachable":
      return unroutable();
  }
}

function refused(refusal: Refusal): Upstream {
  return { kind: "refused", refusal };
}
