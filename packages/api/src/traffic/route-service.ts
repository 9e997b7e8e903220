import { setTimeout as sleep } from "node:timers/promises";
import { Code, ConnectError, type ServiceImpl } from "@connectrpc/connect";
import { type Clock, isSameSecret, type Logger, PlatformError, untilAborted } from "@skerry/base";
import type { SandboxRepository, StoredLink } from "@skerry/store";
import { AGENT_PORT, type LinkProof, parseSandboxId, type SandboxId } from "@skerry/wire";
import { type FindRouteRequest, type LinkProof as LinkMessage, RouteRefusalSchema, type RouteService } from "@skerry/wire/control";
import type { SandboxOptions } from "@skerry/wire/node";
import { ingressOf, isPrivate } from "./ingress.ts";
import { type RouteRefusalFields, routeStep } from "./route-step.ts";
import { SignerSearch } from "./signer-search.ts";

/**
 * Resumes a sandbox because of traffic. Waits for a running pause or resume; callers at the same time share one resume. Resolves when the
 * state may have changed. The signal ends the wait, never the resume.
 */
export type WakeSandbox = (sandboxId: SandboxId, signal: AbortSignal) => Promise<void>;

export interface RouteDeps {
  readonly sandboxes: Pick<SandboxRepository, "find" | "findRoute" | "listRoutedIds">;
  readonly wake: WakeSandbox;
  readonly accessTokenOf: (sandboxId: string) => string;
  readonly trafficTokenOf: (sandboxId: string) => string;
  /** Returns the valid link to this port that the proof proves. */
  readonly findLink: (sandboxId: string, port: number, proof: LinkProof) => Promise<StoredLink | undefined>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** How long traffic waits for a sandbox. Default: 60 s. The edge waits slightly longer. */
  readonly waitMs?: number;
}

/** Resumes per request. It bounds the loop for a sandbox that is paused again before its traffic arrives. */
const MAX_RESUMES = 3;
const LOOK_AGAIN_MS = 50;

const PAUSED: RouteRefusalFields = { state: "paused" };

/** Looks up the route of a sandbox for the edge. For a running sandbox it costs one read by primary key. */
export function createRouteService(deps: RouteDeps): ServiceImpl<typeof RouteService> {
  const signers = new SignerSearch(deps);
  return {
    findSigner: async (request) => ({ sandboxId: (await signers.find(request)) ?? "" }),
    async findLink({ sandboxId, port, link }) {
      const found = link && (await deps.findLink(sandboxId, port, proofFrom(link)));
      if (!found) return {};
      return { link: { expiresInMs: BigInt(Math.max(0, found.expiresAt - deps.clock.now())), methods: [...(found.methods ?? [])] } };
    },
    async findRoute(request, context) {
      const id = parseSandboxId(request.sandboxId);
      if (!id) throw refusal(Code.NotFound, { state: "unknown" });
      const route = (await readRoute(deps, id)) ?? (await waitPatiently(deps, request, { id, signal: context.signal }));
      if (route.ingress && !request.obeysIngress) {
        throw new ConnectError("the edge is too old for the options of this sandbox", Code.FailedPrecondition);
      }
      return route;
    },
  };
}

interface Wait {
  readonly id: SandboxId;
  readonly signal: AbortSignal;
}

async function readRoute({ sandboxes, trafficTokenOf, clock }: RouteDeps, id: SandboxId) {
  const route = await sandboxes.findRoute(id, clock.now());
  if (!route) return undefined;
  const ingress = ingressOf(route.options, () => trafficTokenOf(id));
  const { teamId: limitGroup, nodeId, nodeUrl, startedAt } = route;
  return { nodeId, nodeUrl, run: String(startedAt), limitGroup, ...(ingress && { ingress }) };
}

async function waitPatiently(deps: RouteDeps, request: FindRouteRequest, { id, signal }: Wait) {
  const patience = new AbortController();
  const timer = setTimeout(() => patience.abort(), deps.waitMs ?? 60_000);
  try {
    return await waitForRoute(deps, request, { id, signal: AbortSignal.any([signal, patience.signal]) });
  } catch (error) {
    if (patience.signal.aborted && !(error instanceof ConnectError)) throw refusal(Code.Aborted, PAUSED);
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

async function waitForRoute(deps: RouteDeps, request: FindRouteRequest, { id, signal }: Wait) {
  for (let resumes = 0; ; ) {
    signal.throwIfAborted();
    const sandbox = await deps.sandboxes.find(id);
    const step = routeStep(sandbox, { now: deps.clock.now(), isProbe: request.probe });
    if (step.kind === "refuse") throw refusal(Code.NotFound, step.refusal);
    if (step.kind !== "look_again") {
      if (!request.wake) throw refusal(Code.NotFound, PAUSED);
      if (step.kind === "wake" && !(await mayWake(deps, request, { id, options: sandbox?.options ?? {} })))
        throw refusal(Code.PermissionDenied, PAUSED);
      if (sandbox?.state === "paused" && resumes++ === MAX_RESUMES) throw refusal(Code.Aborted, PAUSED);
      await wake(deps, id, signal);
    }
    const route = await readRoute(deps, id);
    if (route) return route;
    // The timeout has passed, and the sandbox is about to be paused or killed. No event announces that.
    if (sandbox?.state === "running") await sleep(LOOK_AGAIN_MS, undefined, { signal });
  }
}

/**
 * The agent requires the sandbox's token, so a request to its port without the token would resume the sandbox for nothing. The other ports of
 * a private sandbox require its traffic token or a link to them. Those of any other sandbox are open to everybody who knows the id.
 */
async function mayWake(
  deps: RouteDeps,
  { port, accessToken, trafficToken, link }: FindRouteRequest,
  { id, options }: { id: SandboxId; options: SandboxOptions },
): Promise<boolean> {
  if (port === AGENT_PORT) return isSameSecret(accessToken, deps.accessTokenOf(id));
  if (!isPrivate(options) || isSameSecret(trafficToken, deps.trafficTokenOf(id))) return true;
  return link !== undefined && (await deps.findLink(id, port, proofFrom(link))) !== undefined;
}

function proofFrom({ linkId, tokenSha256 }: LinkMessage): LinkProof {
  return { linkId, digest: tokenSha256 };
}

/** Does not throw when the sandbox has ended or may not be resumed: the caller reads its state again. */
async function wake(deps: RouteDeps, id: SandboxId, signal: AbortSignal): Promise<void> {
  try {
    await untilAborted(deps.wake(id, signal), signal);
  } catch (error) {
    signal.throwIfAborted();
    switch (error instanceof PlatformError ? error.code : "internal") {
      case "not_found":
        return;
      case "limit_reached":
        throw refusal(Code.ResourceExhausted, PAUSED, (error as PlatformError).publicMessage);
      case "forbidden":
        throw refusal(Code.PermissionDenied, PAUSED, (error as PlatformError).publicMessage);
      case "conflict":
        throw refusal(Code.Aborted, PAUSED);
      default:
        deps.logger.warn({ err: error, sandbox_id: id }, "resuming a sandbox for its traffic failed");
        throw refusal(Code.Unavailable, PAUSED);
    }
  }
}

function refusal(code: Code, value: RouteRefusalFields, message = `no route: ${value.state}`): ConnectError {
  return new ConnectError(message, code, undefined, [{ desc: RouteRefusalSchema, value: { ...value } }]);
}
