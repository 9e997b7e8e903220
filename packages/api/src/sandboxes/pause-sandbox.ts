// The order matters, as in create-sandbox.ts: `pausing` and the image's entry in one step, the node second, `paused` last.

import { randomBytes } from "node:crypto";
import type { ImageKind, NewImage, Sandbox, TransitionReason } from "@skerry/store";
import { imageIdFrom } from "@skerry/wire";
import { pauseErrorFrom } from "../nodes/node-error.ts";
import { lostReason } from "./create-sandbox.ts";
import type { SandboxDeps } from "./deps.ts";
import { settleNow } from "./reconcile/settle.ts";

export interface PauseOptions {
  readonly memory: boolean;
  /** Rather no pause than one of a sandbox whose agent is silent. */
  readonly requireHealthyGuest: boolean;
  readonly actor: string;
  readonly reason: TransitionReason;
}

export interface Paused {
  readonly sandbox: Sandbox;
  /** Why it is paused without the memory that was asked for; undefined when it has it. */
  readonly memoryLost: string | undefined;
}

/** The entry of an image of a sandbox. */
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

/** Answers with the paused sandbox. It must be in `pausing`, with its image's entry; when this throws, it runs on or is being found out. */
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
      deps.logger.info({ ...facts, agent_unresponsive: agentUnresponsive, node_ms: nodeMs }, "a sandbox was paused");
      const memoryLost = memoryLostReason || undefined;
      if (memoryLost !== undefined)
        deps.logger.warn({ ...facts, memory_lost_reason: memoryLost }, "a sandbox was paused without its memory");
      if (applied.kind === "moved") return { sandbox: applied.sandbox, memoryLost };
    } catch (error) {
      deps.logger.warn({ err: error, sandbox_id: sandbox.id, node_id: sandbox.nodeId }, "pausing a sandbox failed");
      const after = await settleNow(deps, sandbox);
      if (after?.state === "paused") return { sandbox: after, memoryLost: lostInPause(after, options) };
      throw pauseErrorFrom(error, { sandboxId: sandbox.id, runsOn: after?.state === "running" });
    }
    // Somebody who found it in `pausing` was faster to see that it is paused.
    const found = (await deps.store.sandboxes.find(sandbox.id)) ?? sandbox;
    return { sandbox: found, memoryLost: lostInPause(found, options) };
  });
}

/** Of one that ended while it was being paused, and was kept without what was to be kept. */
function lostInPause({ pauseReason, imageHasMemory }: Sandbox, { memory }: PauseOptions): string | undefined {
  return memory && pauseReason !== null && imageHasMemory === false ? "the sandbox ended while it was being paused" : undefined;
}
