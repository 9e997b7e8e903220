// Carries one build out: gives it to a node, stores what the node says, and ends its row. Every write is a compare-and-set on the row's owner
// and state, so a build that was cancelled, or taken over by another process, is simply not continued here.
//
// Failure policy: a node that does not answer proves nothing. The build waits for it until its time is over, which the scheduler watches.
// Only the node's own answer that it does not have the build puts it back into the queue.

import { setTimeout as sleep } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import type { BuildJob, BuildOutcome, BuildReason } from "@skerry/store";
import type { BuildResult } from "@skerry/wire/node";
import type { NodeHandle } from "../nodes/directory.ts";
import { nodeCodeOf } from "../nodes/node-error.ts";
import { type BuildBase, buildSpecOf } from "./build-spec.ts";
import type { BuildDeps } from "./deps.ts";
import { LogLimit } from "./log-limit.ts";
import { BASE_GONE, INTERNAL, INTERRUPTED } from "./reasons.ts";
import { type BuildBatch, watchBuild } from "./watch-build.ts";

const MAX_ATTEMPTS = 3;
const START_TIMEOUT_MS = 30_000;

/** `busy`: the node has no room now. The build is in the queue again. */
export type BegunBuild = "begun" | "busy" | "over";

export interface FollowedBuild {
  readonly job: BuildJob;
  readonly node: NodeHandle;
  /** Aborted when this process is to follow the build no longer. */
  readonly signal: AbortSignal;
}

/** Gives a build to the node that it is assigned to. */
export async function beginBuild(
  deps: BuildDeps,
  { job, node, signal }: FollowedBuild,
  base: Exclude<BuildBase, { kind: "missing" }>,
): Promise<BegunBuild> {
  const { credentials, clock, logger, moves, store } = deps;
  const { request } = job;
  if (!request) return "over";
  const facts = { build_id: job.id, template_id: job.templateId, team_id: job.teamId, node_id: node.nodeId };
  const { credentialsId } = request.source;
  const spec = buildSpecOf(job, request, { base, credentials: credentialsId === undefined ? undefined : credentials.find(credentialsId) });
  for (;;) {
    try {
      await node.client.startBuild({ spec }, { timeoutMs: START_TIMEOUT_MS, signal });
      credentials.drop(credentialsId);
      logger.info(facts, "build begun");
      return "begun";
    } catch (error) {
      if (signal.aborted) return "over";
      const { code } = ConnectError.from(error);
      if (code === Code.ResourceExhausted) {
        await store.builds.requeue(job.id, { owner: moves.owner, lines: [], now: clock.now(), began: false });
        return "busy";
      }
      if (!isUncertain(error)) {
        logger.warn({ err: error, ...facts }, "a node refused a build");
        const isBaseGone = ["layer_missing", "image_missing"].includes(nodeCodeOf(error) ?? "");
        await endWith(deps, job, isBaseGone ? BASE_GONE : INTERNAL);
        return "over";
      }
      logger.warn({ err: error, ...facts }, "a node did not answer the start of a build; it is asked again");
    }
    await pause(deps, signal);
  }
}

/** Stores what the node says until the build has ended, or is no longer this process's. */
export async function followBuild(deps: BuildDeps, { job, node, signal }: FollowedBuild): Promise<void> {
  const { store, logger, moves } = deps;
  const limit = new LogLimit(await store.buildLogs.size(job.id));
  const facts = { build_id: job.id, node_id: node.nodeId };
  while (!signal.aborted) {
    try {
      // Read again after a failure: it may have been stored although the database did not answer.
      const now = await store.builds.findEntry(job.id);
      if (now?.status !== "building" || now.owner !== moves.owner) return;
      const from = now.eventsRead;
      for await (const batch of watchBuild(node, { buildId: job.id, from, signal })) {
        const lines = limit.take(batch.lines);
        if (batch.end) {
          await end(deps, { job, node, batch: { ...batch, lines: [...lines, ...limit.rest()] } });
          return;
        }
        if (!(await store.builds.append(job.id, { owner: moves.owner, lines, now: deps.clock.now(), eventsRead: batch.next }))) return;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (ConnectError.from(error).code === Code.NotFound) return await restart(deps, job);
      logger.warn({ err: error, ...facts }, "following a build failed; it is followed again");
    }
    await pause(deps, signal);
  }
}

/** The node does not know the build: it was restarted. Steps that had ended are cached there, so the next attempt goes on where it was. */
async function restart(deps: BuildDeps, job: BuildJob): Promise<void> {
  const { store, clock, logger, moves } = deps;
  if (job.attempts >= MAX_ATTEMPTS) return await endWith(deps, job, INTERRUPTED);
  const message = "The machine of this build was restarted. The build starts again; steps that were finished are in the cache";
  const line = { at: clock.now(), level: "warn", step: "", message } as const;
  await store.builds.requeue(job.id, { owner: moves.owner, lines: [line], now: clock.now(), began: true });
  logger.warn({ build_id: job.id, attempts: job.attempts }, "a build was interrupted, and is started again");
}

async function end(deps: BuildDeps, { job, node, batch }: { job: BuildJob; node: NodeHandle; batch: BuildBatch }): Promise<void> {
  const { store, clock, moves } = deps;
  const now = clock.now();
  const progress = { owner: moves.owner, lines: batch.lines, now };
  if (batch.end?.kind === "succeeded") {
    const outcome = outcomeOf(deps, { job, node, result: batch.end.result });
    if (await store.builds.succeed(job.id, { ...progress, outcome })) logEnd(deps, job, { outcome: "ready", now });
  } else if (batch.end) {
    const { message, step } = batch.end.failure;
    const reason = { message, ...(step === "" ? {} : { step }) };
    if (await store.builds.fail(job.id, { from: "building", reason, ...progress })) logEnd(deps, job, { outcome: "error", step, now });
  }
}

/** Ends a build with a failure that the control plane found. */
export async function endWith(
  deps: BuildDeps,
  job: Pick<BuildJob, "id" | "teamId" | "templateId" | "startedAt" | "beganAt" | "attempts">,
  reason: BuildReason,
): Promise<void> {
  const now = deps.clock.now();
  const isOurs = await deps.store.builds.fail(job.id, { from: "building", owner: deps.moves.owner, reason, now });
  if (isOurs) logEnd(deps, job, { outcome: "error", step: reason.step ?? "", now });
}

function outcomeOf(deps: BuildDeps, about: { job: BuildJob; node: NodeHandle; result: BuildResult }): BuildOutcome {
  const { layers, context, start, agentVersion } = about.result;
  const { user = "user", workdir = "", env = {} } = context ?? {};
  const isOld = about.job.request?.withoutDefaultUser === true;
  return {
    layers,
    layersNodeId: about.node.nodeId,
    context: { user, workdir, env: { ...env } },
    start: start && { command: start.command, ready: start.ready, user: start.user, workdir: start.workdir, env: { ...start.env } },
    // Clients before 2.3.0 expect these, whatever the steps set.
    defaultUser: isOld ? "user" : user,
    defaultWorkdir: isOld ? "" : workdir,
    agentVersion: agentVersion || deps.config.agentVersion,
  };
}

function logEnd(
  { logger }: BuildDeps,
  job: Pick<BuildJob, "id" | "teamId" | "templateId" | "startedAt" | "beganAt" | "attempts">,
  { outcome, step, now }: { outcome: "ready" | "error"; step?: string; now: number },
): void {
  const facts = {
    build_id: job.id,
    template_id: job.templateId,
    team_id: job.teamId,
    outcome,
    ...(step === undefined ? {} : { step }),
    attempts: job.attempts,
    queued_ms: (job.beganAt ?? now) - (job.startedAt ?? now),
    duration_ms: now - (job.beganAt ?? now),
  };
  logger.info(facts, "build ended");
}

/** Whether the node may have accepted a build although the call failed, or refuses all calls now, because it holds another cluster's sandboxes. */
function isUncertain(error: unknown): boolean {
  const { code } = ConnectError.from(error);
  if (code === Code.FailedPrecondition) return nodeCodeOf(error) === undefined;
  return [Code.Unavailable, Code.DeadlineExceeded, Code.Unknown, Code.Canceled, Code.Aborted].includes(code);
}

async function pause({ timing }: BuildDeps, signal: AbortSignal): Promise<void> {
  await sleep(timing.buildRetryMs, undefined, { signal }).catch(() => {});
}
