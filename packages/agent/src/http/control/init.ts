// Applies what the platform tells the agent. The platform retries with short timeouts, so /init is cheap and repeatable. It runs
// synchronously once the body is read, which serialises concurrent calls.

import { AGENT_VERSION, type SiteNetwork } from "@skerry/wire";
import { stderrLogger } from "../../log.ts";
import { changePortRange } from "../../ports/port-range.ts";
import type { AgentState } from "../../state.ts";
import { equalSecrets, headerToken } from "../access.ts";
import { type Exchange, HttpError, sendAccepted, sendNothing } from "../exchange.ts";
import { readBody } from "../read-body.ts";
import { clockProblem } from "./clock.ts";
import { type InitRequest, parseInit } from "./init-request.ts";

/** Limit on the body, which is held in memory. Most of it are environment variables. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;

export async function init({ req, res, state }: Exchange): Promise<void> {
  const startedAt = performance.now();
  res.setHeader("X-Envd-Version", AGENT_VERSION);
  const request = parseInit(await readBody(req, MAX_BODY_BYTES));
  if (!request) throw new HttpError(400, "", "empty");
  authorise(state, request.accessToken, headerToken(req));
  if (request.unsupported.length > 0) {
    throw new HttpError(501, `not implemented by this agent yet: ${request.unsupported.join(", ")}`, "text");
  }
  if (isStale(state, request)) return sendNothing(res);
  const wasTold = state.newestInit !== undefined;
  apply(state, request);
  // Outside a sandbox this would change the host's port range.
  if (process.pid === 1) changePortRange();
  const announce = request.generation === undefined ? undefined : state.generation?.become(request.generation);
  // A restored agent that knows no site has nothing to take back. After a boot, the disk may have the certificates of a former site.
  if (request.site !== undefined && !(wasTold && state.site === undefined && isEmpty(request.site))) await changeSite(state, request.site);
  const finishTrust = request.caBundle ? await trust(state, request.caBundle) : undefined;
  // For the node's trace. The agent itself sends none.
  if (req.headers.traceparent !== undefined) res.setHeader("Server-Timing", `init;dur=${(performance.now() - startedAt).toFixed(2)}`);
  if (state.generation?.isBusy) sendAccepted(res);
  else sendNothing(res);
  // Still in the same round of the event loop, so the next request finds it done.
  announce?.();
  finishTrust?.();
}

/**
 * Whether a newer request of the same start or restore was already applied. Timestamps of different ones are not comparable, because
 * the platform's clock may have been set back in between.
 */
function isStale({ newestInit }: AgentState, { timestamp, lifecycleId }: InitRequest): boolean {
  if (timestamp === undefined || newestInit === undefined || newestInit.lifecycleId !== lifecycleId) return false;
  return timestamp < newestInit.timestamp;
}

async function trust(state: AgentState, pem: string): Promise<() => void> {
  const { Trust, TrustError } = await import("../../certificates/trust.ts");
  state.trust ??= new Trust();
  try {
    return state.trust.add(pem);
  } catch (error) {
    if (error instanceof TrustError) throw new HttpError(400, error.message, "text");
    throw error;
  }
}

function isEmpty(site: SiteNetwork): boolean {
  return Object.values(site).every((value) => value === "");
}

async function changeSite(state: AgentState, site: SiteNetwork): Promise<void> {
  const { SiteAccess } = await import("../../site/site-access.ts");
  state.site ??= new SiteAccess();
  state.site.become(site);
}

/**
 * The first caller sets the token. Later callers prove that they know it. They repeat it in the body, or send it in the header to set
 * another token or none: a fork of this sandbox has a token of its own.
 */
function authorise(state: AgentState, wanted: string | undefined, presented: string | undefined): void {
  const current = state.accessToken;
  if (current === undefined) return;
  if (presented !== undefined && equalSecrets(presented, current)) return;
  if (wanted === undefined) throw new HttpError(401, "access token reset not authorized", "text");
  if (!equalSecrets(wanted, current)) throw new HttpError(401, "access token validation failed", "text");
}

function apply(state: AgentState, request: InitRequest): void {
  const { timestamp, lifecycleId } = request;
  if (timestamp !== undefined) state.newestInit = { timestamp, lifecycleId };
  const clockAheadMs = timestamp === undefined ? undefined : clockProblem(timestamp, Date.now());
  if (clockAheadMs !== undefined)
    stderrLogger(`the sandbox's clock is ${clockAheadMs} ms ahead of the platform's, and the agent cannot set it`);
  if (request.envVars !== undefined) state.userEnv = new Map(Object.entries(request.envVars));
  state.accessToken = request.accessToken;
  if (request.defaultUser) state.defaultUser = request.defaultUser;
  if (request.defaultWorkdir) state.defaultWorkdir = request.defaultWorkdir;
  state.memoryMB = request.memoryMB ?? state.memoryMB;
  state.maxProcesses = request.maxProcesses ?? state.maxProcesses;
  if (request.sandboxId) state.becomeSandbox(request.sandboxId);
  if (request.templateId) state.internalEnv.set("E2B_TEMPLATE_ID", request.templateId);
}
