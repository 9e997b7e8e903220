// The order matters, as in create-sandbox.ts: first `pausing` and the row of the image in one transaction, then the node, last `paused`.

import { randomBytes } from "node:crypto";
import type { ImageKind, NewImage, Sandbox, TransitionReason } from "@skerry/store";
import { imageIdFrom } from "@skerry/wire";
import { pauseErrorFrom } from "../nodes/node-error.ts";
import { lostReason } from "./create-sandbox.ts";
import type { SandboxDeps } from "./deps.ts";
import { settleNow } from "./reconcile/settle.ts";

export interface PauseOptions {
  readonly memory: boolean;
  /** Refuses to pause a sandbox whose agent does not answer. */
  readonly requireHealthyGuest: boolean;
  readonly actor: string;
  readonly reason: TransitionReason;
}

export interface Paused {
  readonly sandbox: Sandbox;
  /** Why the sandbox is paused without the requested memory; undefined when its image has the memory. */
  readonly memoryLost: string | undefined;
}

/** The row of a new image of a sandbox. */
export function newImage(
  deps: Pick<SandboxDeps, "moves" | "clock">,
  sandbox: Pick<Sandbox, "id" | "teamId" | "nodeId">,
  about: { readonly kind: ImageKind; readonly memory: boolean },
): NewImage {
  return {
    id: imageIdFrom(randomBytes),
    teamId: sandbox.teamId,
    nodeId: sandbox.nodeId,
    sandboxId: sandbox.id,
    kind: about.kind,
    owner: deps.moves.owner,
    hasMemory: about.memory,
    createdAt: deps.clock.now(),
  };
}

/**
 * Returns the paused sandbox. Preconditions: it is in `pausing`, with its image. When this throws, the sandbox runs, or the reconciliation
 * settles it.
 */
export async function finishPause(deps: SandboxDeps, sandbox: Sandbox, options: PauseOptions): Promise<Paused> {
  return await deps.moves.during(sandbox.id, async () => {
    const begunAt = performance.now();
    const imageId = sandbox.imageId ?? "";
    try {
      const node = deps.nodes.get(sandbox.nodeId);
      const answer = await node.client.pauseSandbox(
        { sandboxId: sandbox.id, imageId, memory: options.memory, requireHealthyGuest: options.requireHealthyGuest },
        { timeoutMs: deps.timing.pauseTimeoutMs },
      );
      const { hasMemory, agentUnresponsive, memoryLostReason } = answer;
      const sizeBytes = Number(answer.sizeBytes);
      const applied = await deps.moves.apply(sandbox, "paused", {
        actor: options.actor,
        reason: options.reason,
        ...lostReason(answer),
        set: { pausedAt: deps.clock.now(), imageHasMemory: hasMemory, agentUnresponsive },
        image: { kind: "keep", id: imageId, hasMemory, sizeBytes },
      });
      const facts = { sandbox_id: sandbox.id, node_id: sandbox.nodeId, image_id: imageId, has_memory: hasMemory, size_bytes: sizeBytes };
      const nodeMs = Math.round(performance.now() - begunAt);
      deps.logger.info({ ...facts, agent_unresponsive: agentUnresponsive, node_ms: nodeMs }, "sandbox paused");
      const memoryLost = memoryLostReason || undefined;
      if (memoryLost !== undefined) deps.logger.warn({ ...facts, memory_lost_reason: memoryLost }, "sandbox paused without its memory");
      if (applied.kind === "moved") return { sandbox: applied.sandbox, memoryLost };
    } catch (error) {
      deps.logger.warn({ err: error, sandbox_id: sandbox.id, node_id: sandbox.nodeId }, "pausing a sandbox failed");
      const after = await settleNow(deps, sandbox);
      if (after?.state === "paused") return { sandbox: after, memoryLost: lostInPause(after, options) };
      throw pauseErrorFrom(error, { sandboxId: sandbox.id, runsOn: after?.state === "running" });
    }
    // The reconciliation was faster to move the sandbox from `pausing` to `paused`.
    const found = (await deps.store.sandboxes.find(sandbox.id)) ?? sandbox;
    return { sandbox: found, memoryLost: lostInPause(found, options) };
  });
}

/** The reason for a sandbox that ended during its pause, and was kept without its memory. */
function lostInPause({ pauseReason, imageHasMemory }: Sandbox, { memory }: PauseOptions): string | undefined {
  return memory && pauseReason !== null && imageHasMemory === false ? "the sandbox ended while it was being paused" : undefined;
}
