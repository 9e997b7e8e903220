// The order matters: first `resuming`, then the node, last `running`. The node keeps the image until the sandbox runs, so one of the two exists
// at any moment.

import type { Sandbox } from "@skerry/store";
import { publicError, sandboxNotFound } from "../errors.ts";
import { resumeErrorFrom } from "../nodes/node-error.ts";
import { logStart, lostReason, type Started } from "./create-sandbox.ts";
import type { SandboxDeps } from "./deps.ts";
import { CLEARED_IMAGE, settleNow } from "./reconcile/settle.ts";
import { startSpecOf } from "./start-spec.ts";

export interface ResumeOptions {
  readonly timeoutMs: number;
  /** False: boots from the disk, even when the image has memory. */
  readonly memory: boolean;
  readonly actor: string;
  /** Undefined: keeps the value of the sandbox. */
  readonly autoPause?: boolean | undefined;
}

/** Returns undefined when another caller changed the sandbox first. */
export async function resumeSandbox(deps: SandboxDeps, sandbox: Sandbox, options: ResumeOptions): Promise<Started | undefined> {
  deps.gate.assertOpen();
  assertRestorable(sandbox, options.memory);
  const set = {
    endAt: deps.clock.now() + options.timeoutMs,
    expireNotBefore: null,
    ...(options.autoPause === undefined ? {} : { autoPause: options.autoPause }),
  };
  const begun = await deps.limits.admit(sandbox.teamId, (limits) =>
    deps.moves.apply(sandbox, "resume", { actor: options.actor, limits, exact: true, set }),
  );
  if (begun.kind !== "moved") return undefined;
  return await deps.moves.during(sandbox.id, async () => {
    const started = await resumeOnNode(deps, begun.sandbox, options);
    if (started.memoryLost !== undefined || !options.memory || sandbox.imageHasMemory !== false) return started;
    return { ...started, memoryLost: await deps.store.sandboxes.findLossOfPause(sandbox.id) };
  });
}

/** Throws for memory that was written while the agent did not answer: the agent would not answer after the resume either. */
export function assertRestorable(sandbox: Pick<Sandbox, "id" | "imageHasMemory" | "agentUnresponsive">, memory: boolean): void {
  if (!memory || sandbox.imageHasMemory !== true || sandbox.agentUnresponsive !== true) return;
  throw publicError(
    "conflict",
    `Sandbox '${sandbox.id}' was paused while the agent inside it did not answer, so its memory cannot be resumed; with memory=false it starts from its disk`,
    { detailCode: "sandbox_snapshot_guest_agent_unresponsive" },
  );
}

async function resumeOnNode(deps: SandboxDeps, sandbox: Sandbox, options: ResumeOptions): Promise<Started> {
  const begunAt = performance.now();
  const imageId = sandbox.imageId ?? "";
  try {
    const node = deps.nodes.get(sandbox.nodeId);
    const build = await deps.store.templates.findAnyBuild(sandbox.buildId);
    const spec = await startSpecOf(deps, sandbox, { build, envVars: {}, imageId, withoutMemory: !options.memory });
    const answer = await node.client.resumeSandbox({ spec }, { timeoutMs: deps.timing.resumeTimeoutMs });
    const nodeMs = performance.now() - begunAt;
    const startedAt = deps.clock.now();
    const applied = await deps.moves.apply(sandbox, "resumed", {
      actor: options.actor,
      ...lostReason(answer),
      set: {
        startedAt,
        endAt: startedAt + options.timeoutMs,
        runtime: answer.runtime,
        agentVersion: answer.agentVersion || deps.config.agentVersion,
        ...CLEARED_IMAGE,
      },
      image: { kind: "drop", id: imageId },
    });
    deps.images.finishInBackground({ id: imageId, nodeId: sandbox.nodeId });
    const after = applied.kind === "moved" ? applied.sandbox : await deps.store.sandboxes.find(sandbox.id);
    if (after?.state !== "running") throw sandboxNotFound(sandbox.id);
    return { sandbox: after, memoryLost: logStart(deps, { sandbox: after, answer, nodeMs }) };
  } catch (error) {
    deps.logger.warn({ err: error, sandbox_id: sandbox.id, node_id: sandbox.nodeId }, "resuming a sandbox failed");
    const after = await settleNow(deps, sandbox);
    if (after?.state === "running") return { sandbox: after, memoryLost: undefined };
    throw after?.state === "ended" ? sandboxNotFound(sandbox.id) : resumeErrorFrom(error, sandbox.id);
  }
}
