// Asks the node for the result of an interrupted operation: the API process that began it is gone, or the node's answer was lost.
// Failure policy: a sandbox on which the node still works keeps its state. A node that does not answer proves nothing.

import type { EndReason, PauseReason, Sandbox, SandboxEntry, TransitionReason, UnaskedEnd } from "@skerry/store";
import type { NodeHandle } from "../../nodes/directory.ts";
import { lostReason } from "../create-sandbox.ts";
import type { SandboxDeps } from "../deps.ts";
import type { SandboxEvent } from "../lifecycle/lifecycle.ts";
import { type MoveFacts, PLATFORM } from "../lifecycle/moves.ts";

export interface NodeView {
  /** The sandboxes that the node holds, with their states there. */
  readonly sandboxes: ReadonlyMap<string, string>;
  /** Why sandboxes ended without a request. Includes sandboxes that the node has released already. */
  readonly unaskedEnds: ReadonlyMap<string, EndReason>;
  readonly images: ReadonlySet<string>;
  /** The images without memory, also those for which memory was requested. */
  readonly diskOnly: ReadonlySet<string>;
  /** The images that the node wrote of sandboxes that had ended without a request. */
  readonly kept: ReadonlyMap<string, KeptImage>;
  /** Why the last snapshot of a sandbox lost its memory. */
  readonly memoryLost: ReadonlyMap<string, string>;
  /** The versions of the secrets that the node has for sandboxes which need some. */
  readonly secrets: ReadonlyMap<string, string>;
}

export interface KeptImage {
  readonly imageId: string;
  readonly reason: PauseReason;
  readonly hasMemory: boolean;
  readonly sizeBytes: number;
}

export type SettleDeps = Pick<SandboxDeps, "store" | "nodes" | "moves" | "images" | "givenUp" | "timing" | "clock" | "logger">;

/**
 * Lists the images before and after the sandboxes. A sandbox that is paused in between has its image in the second list; one that is resumed
 * in between has it in the first.
 */
export async function viewNode(node: NodeHandle, timeoutMs: number): Promise<NodeView> {
  const before = await node.client.listImages({}, { timeoutMs });
  const held = await node.client.listSandboxes({}, { timeoutMs });
  const after = await node.client.listImages({}, { timeoutMs });
  return {
    images: new Set([...before.imageIds, ...after.imageIds]),
    diskOnly: new Set([...before.diskOnlyIds, ...after.diskOnlyIds]),
    sandboxes: new Map(held.sandboxes.map(({ sandboxId, state }) => [sandboxId, state])),
    unaskedEnds: new Map(held.unaskedEnds.map(({ sandboxId, reason }) => [sandboxId, unaskedEndFrom(reason)])),
    kept: new Map(
      held.kept.map(({ sandboxId, imageId, reason, hasMemory, sizeBytes }) => [
        sandboxId,
        { imageId, reason: reason === "disk" ? reason : unaskedEndFrom(reason), hasMemory, sizeBytes: Number(sizeBytes) },
      ]),
    ),
    secrets: new Map(
      held.sandboxes.flatMap(({ sandboxId, secretsVersion }) => (secretsVersion === undefined ? [] : [[sandboxId, secretsVersion]])),
    ),
    memoryLost: new Map(held.sandboxes.flatMap(({ sandboxId, memoryLostReason: why }) => (why === "" ? [] : [[sandboxId, why]]))),
  };
}

function unaskedEndFrom(reason: string): UnaskedEnd {
  return reason === "memory" ? "memory" : "exited";
}

/** The event that explains what the node has of a sandbox; undefined when the node still works on it. */
export function judge(entry: Pick<SandboxEntry, "id" | "state" | "imageId">, view: NodeView): SandboxEvent | undefined {
  const held = view.sandboxes.get(entry.id);
  const hasImage = entry.imageId !== null && view.images.has(entry.imageId);
  const lost = view.kept.has(entry.id) ? "kept" : "gone";
  switch (entry.state) {
    case "snapshotting":
      if (held === undefined) return lost;
      return held === "pausing" || held === "snapshotting" ? undefined : "snapshot_over";
    case "pausing":
      if (held === undefined) return hasImage ? "paused" : lost;
      return held === "pausing" || (held === "killing" && hasImage) ? undefined : "pause_failed";
    case "resuming":
      if (held === "running") return "resumed";
      if (held !== undefined) return undefined;
      return hasImage ? "resume_failed" : lost;
    case "copying":
      return hasImage ? "copy_over" : lost;
    case "paused":
      return hasImage ? undefined : lost;
    case "running":
      return held === undefined ? lost : undefined;
    case "starting":
    case "killing":
    case "ended":
      return undefined;
  }
}

/** Applies the event. Preconditions: the row was read before the node was asked, unless no other process may change it. */
export async function settle(deps: SettleDeps, entry: SandboxEntry, view: NodeView): Promise<Sandbox | undefined> {
  const event = judge(entry, view);
  if (event === undefined) return undefined;
  const applied = await deps.moves.apply(entry, event, { actor: PLATFORM, exact: true, ...(await factsOf(deps, entry, { event, view })) });
  if (applied.kind !== "moved") return undefined;
  const { state: to, endReason } = applied.sandbox;
  const facts = { sandbox_id: entry.id, node_id: entry.nodeId, from: entry.state, to, ...(event === "gone" && { reason: endReason }) };
  deps.logger.warn(facts, event === "gone" ? "sandbox is no longer on its node" : "sandbox found in another state on its node");
  if (entry.imageId !== null && (event === "resumed" || event === "pause_failed" || event === "gone" || event === "kept")) {
    deps.images.finishInBackground({ id: entry.imageId, nodeId: entry.nodeId });
  }
  return applied.sandbox;
}

/** Asks the node about a sandbox whose operation failed in this process. Returns undefined when the node does not answer. */
export async function settleNow(deps: SettleDeps, sandbox: Sandbox): Promise<Sandbox | undefined> {
  try {
    const view = await viewNode(deps.nodes.get(sandbox.nodeId), deps.timing.listTimeoutMs);
    const settled = await settle(deps, sandbox, view);
    if (settled) return settled;
  } catch (error) {
    deps.logger.warn(
      { err: error, sandbox_id: sandbox.id, node_id: sandbox.nodeId },
      "the state of a sandbox on its node is not known yet",
    );
  }
  await deps.store.sandboxes.disown(sandbox);
  return undefined;
}

async function factsOf(
  deps: SettleDeps,
  entry: SandboxEntry,
  { event, view }: { event: SandboxEvent; view: NodeView },
): Promise<Omit<MoveFacts, "actor">> {
  const now = deps.clock.now();
  const drop = entry.imageId === null ? {} : ({ image: { kind: "drop", id: entry.imageId } } as const);
  switch (event) {
    case "gone":
      return { reason: view.unaskedEnds.get(entry.id) ?? deps.givenUp.reasonOf(entry.id) ?? "node_lost", ...drop };
    case "kept":
      return keptFacts(deps, entry, view);
    case "snapshot_over":
      return lostBy(entry, view);
    case "pause_failed":
      // Wait before the next attempt when the timeout has passed and the sandbox has autoPause.
      return { set: { imageId: null, ...NOT_SUSPENDED, expireNotBefore: now + PAUSE_AGAIN_MS }, ...drop };
    case "resumed": {
      // The resume set the end time when it began.
      return { ...lostBy(entry, view), set: { startedAt: now, ...CLEARED_IMAGE }, ...drop };
    }
    case "paused": {
      const image = entry.imageId === null ? undefined : await deps.store.images.find(entry.imageId);
      const kept = view.kept.get(entry.id);
      const isKept = kept !== undefined && kept.imageId === entry.imageId;
      // The row of the image has what was requested.
      const hasMemory = isKept ? kept.hasMemory : (image?.hasMemory ?? false) && !view.diskOnly.has(image?.id ?? "");
      return {
        ...(isKept && image?.hasMemory && !hasMemory ? { reason: memoryLostBy(kept.reason) } : {}),
        set: { pausedAt: now, imageHasMemory: hasMemory, agentUnresponsive: false },
        ...(image ? { image: { kind: "keep", id: image.id, hasMemory, sizeBytes: image.sizeBytes } } : {}),
      };
    }
    default:
      return {};
  }
}

function lostBy(entry: Pick<SandboxEntry, "id">, view: NodeView): { reason?: TransitionReason } {
  return lostReason({ memoryLostReason: view.memoryLost.get(entry.id) ?? "" });
}

/** How long a sandbox is kept that nobody paused: for the rest of its timeout, or long enough for its owner to notice. */
function keptFacts(deps: SettleDeps, entry: SandboxEntry, view: NodeView): Omit<MoveFacts, "actor"> {
  const kept = view.kept.get(entry.id);
  if (!kept) return {};
  const now = deps.clock.now();
  const { imageId: id, reason, hasMemory, sizeBytes } = kept;
  const { teamId, nodeId, id: sandboxId, imageId } = entry;
  const image = { id, teamId, nodeId, sandboxId, kind: "pause", owner: deps.moves.owner, hasMemory, createdAt: now } as const;
  return {
    reason: hasMemory ? reason : memoryLostBy(reason),
    set: {
      imageId: id,
      imageHasMemory: hasMemory,
      agentUnresponsive: false,
      pausedAt: now,
      pauseReason: reason,
      keepUntil: entry.autoPause ? null : Math.max(entry.endAt ?? 0, now + deps.timing.keepUnaskedMs),
      expireNotBefore: null,
    },
    image: { kind: "take over", image, sizeBytes, ...(imageId === null ? {} : { instead: imageId }) },
  };
}

function memoryLostBy(reason: PauseReason): TransitionReason {
  if (reason === "disk") return "memory_lost: it was filling its machine's disk, which had no room for its memory";
  return reason === "memory" ? "memory_lost: it ran out of memory" : "memory_lost: its runtime ended by itself";
}

const PAUSE_AGAIN_MS = 1_000;

/** For a sandbox that no shutdown suspended. */
export const NOT_SUSPENDED = { resumeMs: null, suspendedBy: null } as const;

/** The fields that a pause sets, cleared for a sandbox that runs. */
export const CLEARED_IMAGE = {
  imageId: null,
  imageHasMemory: null,
  agentUnresponsive: null,
  pausedAt: null,
  pauseReason: null,
  keepUntil: null,
  ...NOT_SUSPENDED,
} as const;
