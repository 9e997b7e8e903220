// The order matters: first the row, then the node, last `running`. When the create is interrupted, the row shows that the node may hold the
// sandbox, and the reconciliation cleans up, also after the end of this process.

import { randomBytes } from "node:crypto";
import { PlatformError } from "@skerry/base";
import type { Build, EndReason, NewSandbox, Sandbox } from "@skerry/store";
import { sandboxIdFrom } from "@skerry/wire";
import { chosenLimits, networkLimitsOf, type SandboxOptions, withNetworkLimits } from "@skerry/wire/node";
import { publicError, sandboxBusy } from "../errors.ts";
import type { NodeHandle } from "../nodes/directory.ts";
import { createErrorFrom } from "../nodes/node-error.ts";
import type { ResolvedTemplate } from "../templates/template-service.ts";
import { invalidMounts, type MountRequest } from "../volumes/mounts.ts";
import type { Acting, SandboxDeps } from "./deps.ts";
import { PLATFORM } from "./lifecycle/moves.ts";
import { leastBusyNode } from "./placement.ts";
import { startSpecOf } from "./start-spec.ts";
import { mountsOf } from "./volume-mounts.ts";

/** A sandbox that was started, and how. */
export interface Started {
  readonly sandbox: Sandbox;
  /** Why the memory of the image was not restored; undefined when it was restored or not requested. */
  readonly memoryLost: string | undefined;
}

export interface CreateRequest {
  readonly by: Acting;
  /** Chosen before the create when the request has an idempotency key. */
  readonly id?: string;
  readonly template: ResolvedTemplate;
  readonly timeoutMs: number;
  readonly metadata: Readonly<Record<string, string>> | undefined;
  readonly envVars: Readonly<Record<string, string>>;
  readonly options: SandboxOptions;
  readonly autoPause: boolean;
  readonly autoPauseMemory: boolean;
  readonly autoResume: boolean;
  /** Undefined: the volumes of the snapshot, if it is one of the team. */
  readonly volumeMounts: readonly MountRequest[] | undefined;
  /** Aborted when the caller disconnects. */
  readonly signal: AbortSignal;
}

export async function createSandbox(deps: SandboxDeps, request: CreateRequest): Promise<Started> {
  const { build, alias, template } = request.template;
  const { mounts, volumesNodeId } = await mountsOf(deps, request);
  const closed = await deps.store.nodes.closed();
  const onlyNodeId = volumesNodeId ?? build.image?.nodeId;
  const node = onlyNodeId !== undefined ? openNode(imageNode(deps, onlyNodeId), closed) : await pickNode(deps, build.layersNodeId, closed);
  const entry: NewSandbox = {
    id: request.id ?? newSandboxId(),
    teamId: request.by.teamId,
    templateId: template.id,
    buildId: build.id,
    alias: alias ?? null,
    nodeId: node.nodeId,
    nodeUrl: node.url,
    owner: deps.moves.owner,
    createdAt: deps.clock.now(),
    metadata: request.metadata ?? null,
    cpuCount: build.cpuCount,
    memoryMb: build.memoryMb,
    diskSizeMb: build.diskSizeMb,
    options: withNetworkLimits(request.options, chosenLimits(networkLimitsOf(request.options), template.networkLimits)),
    autoPause: request.autoPause,
    autoPauseMemory: request.autoPauseMemory,
    autoResume: request.autoResume,
    timeoutMs: request.timeoutMs,
    volumeMounts: mounts,
  };
  const { by, envVars, signal } = request;
  return await startNew(deps, { by, entry, node, build, imageId: build.image?.id, envVars, signal });
}

export function newSandboxId(): string {
  return sandboxIdFrom(randomBytes);
}

/** The start of a sandbox that has no row yet. */
export interface NewStart {
  readonly by: Acting;
  readonly entry: NewSandbox;
  readonly node: NodeHandle;
  readonly build: Build | undefined;
  /** The image that the sandbox starts from. */
  readonly imageId: string | undefined;
  readonly envVars: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

export async function startNew(deps: SandboxDeps, start: NewStart): Promise<Started> {
  const { entry, by, signal } = start;
  deps.gate.assertOpen();
  await deps.limits
    .admitNew(entry.teamId, entry, (limits) => deps.store.sandboxes.insert(entry, { actor: by.actor, limits }))
    .catch(namingVolume);
  return await deps.moves.during(entry.id, async () => {
    try {
      const started = await startOnNode(deps, start);
      if (signal.aborted) throw new PlatformError("internal", "the caller went away");
      deps.nodes.countCreate(start.node.nodeId, "successes");
      deps.starts.add(entry.teamId);
      return started;
    } catch (error) {
      if (!signal.aborted) deps.nodes.countCreate(start.node.nodeId, "failures");
      const reason = signal.aborted ? "caller_gone" : "create_failed";
      const isOurs = await abandon(deps, start, reason).catch((failure: unknown) => {
        deps.logger.warn({ err: failure, sandbox_id: entry.id }, "a failed create could not be recorded; the reconciliation ends it");
        deps.givenUp.add(entry.id, reason);
        void killOnNode(deps, start.node, entry.id);
        return true;
      });
      throw isOurs ? createErrorFrom(error, { fromImage: start.imageId !== undefined }) : sandboxBusy(entry.id);
    }
  });
}

/** A volume was found, and deleted before the sandbox had its row. */
function namingVolume(error: unknown): never {
  throw error instanceof PlatformError && error.code === "volume_gone" ? invalidMounts(["a volume was deleted meanwhile"]) : error;
}

/** The node with the fewest sandboxes, of those that have the layers. */
async function pickNode(deps: SandboxDeps, layersNodeId: string | undefined, closed: ReadonlySet<string>): Promise<NodeHandle> {
  const nodes = deps.nodes.candidatesWith(layersNodeId, closed);
  const picked = await leastBusyNode(deps, nodes);
  if (picked) return picked;
  throw publicError("capacity_unavailable", "Failed to place sandbox: there is no machine to run it", {
    detailCode: "sandbox_capacity_unavailable",
  });
}

/** The node that holds an image. A start from an image runs there. Throws when the node cannot be reached. */
export function imageNode(deps: Pick<SandboxDeps, "nodes">, nodeId: string): NodeHandle {
  const node = deps.nodes.find(nodeId);
  if (node) return node;
  throw publicError("capacity_unavailable", "Failed to place sandbox: the machine that has its snapshot cannot be reached", {
    detailCode: "sandbox_no_compatible_node",
  });
}

/** The node, unless the operator closed it to new sandboxes. */
export function openNode(node: NodeHandle, closed: ReadonlySet<string>): NodeHandle {
  if (!closed.has(node.nodeId)) return node;
  throw publicError("capacity_unavailable", "Failed to place sandbox: the machine that it must run on takes no new sandboxes now", {
    detailCode: "sandbox_no_compatible_node",
  });
}

async function startOnNode(deps: SandboxDeps, start: NewStart): Promise<Started> {
  const { entry, node } = start;
  const begunAt = performance.now();
  const answer = await node.client.createSandbox(
    { spec: await startSpecOf(deps, entry, start) },
    { timeoutMs: deps.timing.createTimeoutMs, signal: start.signal },
  );
  const startedAt = deps.clock.now();
  const sandbox = await deps.store.sandboxes.start(entry.id, {
    startedAt,
    endAt: startedAt + entry.timeoutMs,
    runtime: answer.runtime,
    agentVersion: answer.agentVersion || deps.config.agentVersion,
    actor: start.by.actor,
    ...lostReason(answer),
  });
  if (!sandbox) throw sandboxBusy(entry.id);
  return { sandbox, memoryLost: logStart(deps, { sandbox, answer, nodeMs: performance.now() - begunAt }) };
}

/** The reason for the journal. */
export function lostReason(answer: { memoryLostReason: string }): { reason?: `memory_lost: ${string}` } {
  return answer.memoryLostReason === "" ? {} : { reason: `memory_lost: ${answer.memoryLostReason}` };
}

const START_KINDS = ["unknown", "boot", "restore", "claim"] as const;

/** Logs a start. Returns why memory was lost; undefined when it was not. */
export function logStart(
  deps: Pick<SandboxDeps, "logger">,
  start: { sandbox: Sandbox; answer: { startKind: number; memoryLostReason: string; runtime: string }; nodeMs: number },
): string | undefined {
  const { sandbox, answer } = start;
  const lost = answer.memoryLostReason === "" ? undefined : answer.memoryLostReason;
  const facts = {
    sandbox_id: sandbox.id,
    template_id: sandbox.templateId,
    node_id: sandbox.nodeId,
    runtime: answer.runtime,
    start_kind: START_KINDS[answer.startKind] ?? "unknown",
    node_ms: Math.round(start.nodeMs),
    ...(lost === undefined ? {} : { memory_lost_reason: lost }),
  };
  if (lost === undefined) deps.logger.info(facts, "sandbox started");
  else deps.logger.warn(facts, "sandbox started without its memory");
  return lost;
}

/**
 * Kills a sandbox whose create failed. The node is called in the background, so that the caller does not wait for a node that does not answer.
 * Returns false when another caller is killing the sandbox, which made the create fail.
 */
async function abandon(deps: SandboxDeps, start: NewStart, reason: EndReason): Promise<boolean> {
  const { entry, node } = start;
  const sandbox = await deps.store.sandboxes.find(entry.id);
  if (!sandbox) return true;
  if (sandbox.state === "starting" || sandbox.state === "running") {
    const begun = await deps.kills.begin(sandbox, "abandon", { reason, actor: PLATFORM });
    if (begun.kind === "moved") {
      deps.kills.finishInBackground(sandbox);
      return true;
    }
  }
  // The other kill may have reached the node before the create, so kill once more.
  await killOnNode(deps, node, entry.id);
  return false;
}

/** Kills without a row. When this fails, the reconciliation finds that the node holds an unknown sandbox. */
async function killOnNode(deps: SandboxDeps, node: NodeHandle, sandboxId: string): Promise<void> {
  try {
    await node.client.killSandbox({ sandboxId }, { timeoutMs: deps.timing.killTimeoutMs });
  } catch (error) {
    deps.logger.warn(
      { err: error, sandbox_id: sandboxId, node_id: node.nodeId },
      "killing a failed create on its node failed; the reconciliation ends it",
    );
  }
}
