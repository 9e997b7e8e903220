// Takes an image of a sandbox that keeps its state: of a running sandbox, or of the image of a paused one.

import type { ImageKind, NewImage, Sandbox } from "@skerry/store";
import { snapshotErrorFrom } from "../../nodes/node-error.ts";
import { lostReason } from "../create-sandbox.ts";
import type { SandboxDeps } from "../deps.ts";
import { newImage } from "../pause-sandbox.ts";
import { settleNow } from "../reconcile/settle.ts";

export interface TakenImage {
  readonly image: NewImage;
  readonly hasMemory: boolean;
  readonly sizeBytes: number;
  /** Why the sandbox continued without its memory; undefined when it has its memory. */
  readonly memoryLost: string | undefined;
}

/**
 * Returns undefined when another caller changed the sandbox first. The image stays in `creating`: the caller must keep or drop it. When this
 * function throws, there is no image, and the sandbox has its former state.
 */
export async function takeImage(
  deps: SandboxDeps,
  sandbox: Sandbox,
  about: { readonly kind: Exclude<ImageKind, "pause">; readonly memory: boolean; readonly actor: string },
): Promise<TakenImage | undefined> {
  const image = newImage(deps, sandbox, about);
  const event = sandbox.state === "paused" ? "copy" : "snapshot";
  const begin = { actor: about.actor, exact: true, image: { kind: "begin", image } } as const;
  const begun =
    about.kind === "fork"
      ? await deps.moves.apply(sandbox, event, begin)
      : await deps.limits.admitSnapshot(sandbox.teamId, (maxSnapshots) => deps.moves.apply(sandbox, event, { ...begin, maxSnapshots }));
  if (begun.kind !== "moved") return undefined;
  return await deps.moves.during(sandbox.id, async () => {
    const begunAt = performance.now();
    try {
      const node = deps.nodes.get(sandbox.nodeId);
      const answer = await node.client.snapshotSandbox(
        { sandboxId: sandbox.id, imageId: image.id, memory: about.memory, sourceImageId: event === "copy" ? (sandbox.imageId ?? "") : "" },
        { timeoutMs: deps.timing.snapshotTimeoutMs },
      );
      await deps.moves.apply(begun.sandbox, event === "copy" ? "copy_over" : "snapshot_over", {
        actor: about.actor,
        ...lostReason(answer),
      });
      const sizeBytes = Number(answer.sizeBytes);
      const facts = { sandbox_id: sandbox.id, node_id: sandbox.nodeId, image_id: image.id, kind: about.kind, has_memory: answer.hasMemory };
      deps.logger.info({ ...facts, size_bytes: sizeBytes, node_ms: Math.round(performance.now() - begunAt) }, "image taken");
      const memoryLost = answer.memoryLostReason || undefined;
      if (memoryLost !== undefined) deps.logger.warn({ ...facts, memory_lost_reason: memoryLost }, "sandbox continued without its memory");
      return { image, hasMemory: answer.hasMemory, sizeBytes, memoryLost };
    } catch (error) {
      deps.logger.warn({ err: error, sandbox_id: sandbox.id, node_id: sandbox.nodeId }, "taking an image failed");
      await deps.images.drop(image);
      const after = await settleNow(deps, begun.sandbox);
      throw snapshotErrorFrom(error, { sandboxId: sandbox.id, isBack: after?.state === "running" || after?.state === "paused", after });
    }
  });
}
