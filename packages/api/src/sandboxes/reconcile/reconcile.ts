// Makes entries and nodes agree again after something was cut off in the middle.
// Failure policy: a node that does not answer proves nothing; its sandboxes stay as they are.

import type { SandboxEntry, SandboxState } from "@skerry/store";
import type { NodeHandle } from "../../nodes/directory.ts";
import type { SandboxDeps } from "../deps.ts";
import { StrayImages } from "../images/stray-images.ts";
import { PLATFORM } from "../lifecycle/moves.ts";
import { type NodeView, settle, viewNode } from "./settle.ts";

const SCAN_LIMIT = 10_000;
const UNCLAIMED_MS = 5_000;

export class Reconciler {
  readonly #deps: SandboxDeps;
  readonly #strays: StrayImages;
  constructor(deps: SandboxDeps) {
    this.#deps = deps;
    this.#strays = new StrayImages(deps);
  }

  /** What the database alone says. Waits for no node: what they are to do is begun. */
  async round(): Promise<void> {
    const { timing, store, clock, kills, images } = this.#deps;
    await this.#abandonLeftOvers();
    await this.#dropLeftImages();
    await this.#endNotKept();
    await kills.retryOrphaned();
    await kills.retryUnsettled(timing.killTimeoutMs);
    await images.retry();
    await store.sandboxes.forgetEnded(clock.now() - timing.keepEndedMs);
    await store.idempotency.forget(clock.now() - timing.keepKeysMs);
  }

  /** Creates that nobody will finish: ours from before this process, and anybody's that should have failed long ago. */
  async #abandonLeftOvers(): Promise<void> {
    const { store, kills } = this.#deps;
    const starting = await store.sandboxes.listUnsettled("starting", Number.MAX_SAFE_INTEGER, SCAN_LIMIT);
    await Promise.all(
      starting
        .filter((sandbox) => this.#isLeft(sandbox))
        .map(async (sandbox) => {
          const begun = await kills.begin(sandbox, "abandon", { reason: "abandoned", actor: PLATFORM });
          if (begun.kind === "moved") kills.finishInBackground(sandbox);
        }),
    );
  }

  /** Nobody works on it any more. This process says so itself of what it gave up (`disown`). */
  #isLeft(sandbox: SandboxEntry): boolean {
    const { moves, leftOvers } = this.#deps;
    if (moves.isBusy(sandbox.id)) return false;
    // Its own, and it is not at work on it: it could not even say so, because the database was away.
    const longest = sandbox.owner === moves.owner ? UNCLAIMED_MS : longestMs(sandbox.state, this.#deps);
    return leftOvers.isLeft({ key: `${sandbox.id}/${sandbox.version}`, owner: sandbox.owner, longestMs: longest });
  }

  /** What a node says. */
  async roundOf(node: NodeHandle): Promise<void> {
    const { store, timing, nodes } = this.#deps;
    // Entries first: whatever is running or kept in them was on the node before the node is asked.
    const entries = await store.sandboxes.listOnNode(node.nodeId, NODE_STATES);
    let view: NodeView;
    try {
      view = await viewNode(node, timing.listTimeoutMs);
      nodes.answered(node.nodeId);
    } catch (error) {
      nodes.failed(node.nodeId, error);
      return;
    }
    const unsettled = entries.filter(({ state }) => state !== "running" && state !== "paused");
    const lost = entries.filter((entry) => isLost(entry, view));
    for (const entry of [...unsettled.filter((sandbox) => this.#isLeft(sandbox)), ...lost]) await settle(this.#deps, entry, view);
    // Its entry is no longer of use to anybody, also where the node cannot give it back for now.
    const exited = entries.filter(({ id, state }) => state === "running" && view.sandboxes.get(id) === "killing");
    // The node first here: an entry is written before its node hears of it, so what has none now never had one, or has ended.
    const live = await store.sandboxes.filterLive([...view.sandboxes.keys()]);
    const orphans = [...view.sandboxes.keys()].filter((id) => !live.has(id));
    await Promise.all([
      ...exited.map((sandbox) => this.#endExited(sandbox, view)),
      ...orphans.map((id) => this.#killOrphan(node, id)),
      this.#strays.look(node, view.images),
    ]);
  }

  async #endExited(sandbox: SandboxEntry, view: NodeView): Promise<void> {
    const reason = view.unaskedEnds.get(sandbox.id) ?? "exited";
    const begun = await this.#deps.kills.begin(sandbox, "exit", { reason, actor: PLATFORM });
    if (begun.kind === "moved") this.#deps.kills.finishInBackground(sandbox);
  }

  async #killOrphan(node: NodeHandle, sandboxId: string): Promise<void> {
    const { logger, timing } = this.#deps;
    const facts = { sandbox_id: sandboxId, node_id: node.nodeId };
    try {
      await node.client.killSandbox({ sandboxId }, { timeoutMs: timing.killTimeoutMs });
      logger.warn(facts, "a sandbox without an entry was killed");
    } catch (error) {
      logger.warn({ err: error, ...facts }, "killing a sandbox without an entry failed");
    }
  }

  /** What ended by itself, and was kept long enough. */
  async #endNotKept(): Promise<void> {
    const { store, kills, clock } = this.#deps;
    for (const sandbox of await store.sandboxes.listNotKept(clock.now(), SCAN_LIMIT)) {
      const begun = await kills.begin(sandbox, "expire", { reason: "timeout", actor: PLATFORM });
      if (begun.kind === "moved") kills.finishInBackground(sandbox);
    }
  }

  /** Images that nobody will finish or use. Those of sandboxes that are still being paused are settled with these. */
  async #dropLeftImages(): Promise<void> {
    const { store, leftOvers, images } = this.#deps;
    const longest = longestMs("snapshotting", this.#deps) + this.#deps.timing.createTimeoutMs;
    for (const image of await store.images.listUnsettled("creating", SCAN_LIMIT)) {
      if (!leftOvers.isLeft({ key: image.id, owner: image.owner, longestMs: longest })) continue;
      const sandbox = await store.sandboxes.find(image.sandboxId);
      if (sandbox?.imageId !== image.id) await images.drop(image);
    }
  }
}

/** States in which a node has something of a sandbox. */
const NODE_STATES: readonly SandboxState[] = ["running", "snapshotting", "pausing", "paused", "copying", "resuming"];

function isLost(entry: SandboxEntry, view: NodeView): boolean {
  if (entry.state === "running") return !view.sandboxes.has(entry.id);
  return entry.state === "paused" && (entry.imageId === null || !view.images.has(entry.imageId));
}

/** After this, what another process began is left over, although that process lives. */
function longestMs(state: SandboxState, { timing }: Pick<SandboxDeps, "timing">): number {
  switch (state) {
    case "starting":
      return timing.createTimeoutMs * 2;
    case "resuming":
      return timing.resumeTimeoutMs * 2;
    default:
      return Math.max(timing.pauseTimeoutMs, timing.snapshotTimeoutMs) * 2;
  }
}
