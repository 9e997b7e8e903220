// Makes the database and the nodes agree again after an operation was interrupted.
// Failure policy: a node that does not answer proves nothing, so its sandboxes keep their state.

import type { SandboxEntry, SandboxState } from "@skerry/store";
import type { NodeHandle } from "../../nodes/directory.ts";
import { UnusedLayers } from "../../templates/unused-layers.ts";
import type { SandboxDeps } from "../deps.ts";
import { StrayImages } from "../images/stray-images.ts";
import { PLATFORM } from "../lifecycle/moves.ts";
import { settleOptions } from "./left-options.ts";
import { settleSecrets } from "./left-secrets.ts";
import { type NodeView, settle, viewNode } from "./settle.ts";

const SCAN_LIMIT = 10_000;
const UNCLAIMED_MS = 5_000;

export class Reconciler {
  readonly #deps: SandboxDeps;
  readonly #strays: StrayImages;
  readonly #layers: UnusedLayers;
  constructor(deps: SandboxDeps) {
    this.#deps = deps;
    this.#strays = new StrayImages(deps);
    this.#layers = new UnusedLayers(deps);
  }

  /** The part that needs the database alone. It begins work on nodes, and does not wait for it. */
  async round(): Promise<void> {
    const { timing, store, clock, kills, images, volumes } = this.#deps;
    await this.#abandonLeftOvers();
    await this.#dropLeftImages();
    await this.#endNotKept();
    await kills.retryOrphaned();
    await kills.retryUnsettled(timing.killTimeoutMs);
    await images.retry();
    await volumes.retry();
    await store.sandboxes.forgetEnded(clock.now() - timing.keepEndedMs);
    await store.idempotency.forget(clock.now() - timing.keepKeysMs);
  }

  /** Kills creates that no process will finish: those of earlier runs, and all that exceed the longest time of a create. */
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

  /** Whether no process works on the sandbox any more. This process marks operations that it gave up (`disown`). */
  #isLeft(sandbox: SandboxEntry): boolean {
    const { moves, leftOvers } = this.#deps;
    if (moves.isBusy(sandbox.id)) return false;
    // A sandbox of this process that it does not work on: the database was away when it gave the operation up.
    const longest = sandbox.owner === moves.owner ? UNCLAIMED_MS : longestMs(sandbox.state, this.#deps);
    return leftOvers.isLeft({ key: `${sandbox.id}/${sandbox.version}`, owner: sandbox.owner, longestMs: longest });
  }

  /** The part that compares the database with one node. */
  async roundOf(node: NodeHandle): Promise<void> {
    const { store, timing, nodes } = this.#deps;
    // The database is read first: a sandbox that runs or is paused there was on the node before the node is asked.
    const entries = await store.sandboxes.listOnNode(node.nodeId, NODE_STATES);
    let view: NodeView;
    try {
      view = await viewNode(node, timing.listTimeoutMs);
      nodes.answered(node.nodeId);
    } catch (error) {
      nodes.failed(node.nodeId, error);
      this.#layers.startAgain(node);
      return;
    }
    const unsettled = entries.filter(({ state }) => state !== "running" && state !== "paused");
    const lost = entries.filter((entry) => isLost(entry, view));
    for (const entry of [...unsettled.filter((sandbox) => this.#isLeft(sandbox)), ...lost]) await settle(this.#deps, entry, view);
    // These sandboxes have ended, also when the node cannot release everything yet.
    const exited = entries.filter(({ id, state }) => state === "running" && view.sandboxes.get(id) === "killing");
    // Here the node was asked first. A row is written before its node is called, so a sandbox without a row never had one, or has ended.
    const live = await store.sandboxes.filterLive([...view.sandboxes.keys()]);
    const orphans = [...view.sandboxes.keys()].filter((id) => !live.has(id));
    await Promise.all([
      ...exited.map((sandbox) => this.#endExited(sandbox, view)),
      ...orphans.map((id) => this.#killOrphan(node, id)),
      this.#strays.look(node, view.images),
      settleOptions(this.#deps, node),
      settleSecrets(this.#deps, node, view.secrets),
      this.#layers.look(node),
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
      logger.warn(facts, "a sandbox without a row in the database was killed");
    } catch (error) {
      logger.warn({ err: error, ...facts }, "killing a sandbox without a row in the database failed");
    }
  }

  /** Ends sandboxes that were kept after they ended by themselves, when their time has passed. */
  async #endNotKept(): Promise<void> {
    const { store, kills, clock } = this.#deps;
    for (const sandbox of await store.sandboxes.listNotKept(clock.now(), SCAN_LIMIT)) {
      const begun = await kills.begin(sandbox, "expire", { reason: "timeout", actor: PLATFORM });
      if (begun.kind === "moved") kills.finishInBackground(sandbox);
    }
  }

  /** Drops images that no process will finish or use. The image of a sandbox in `pausing` is settled with its sandbox. */
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

/** States in which a node holds a sandbox or its image. */
const NODE_STATES: readonly SandboxState[] = ["running", "snapshotting", "pausing", "paused", "copying", "resuming"];

function isLost(entry: SandboxEntry, view: NodeView): boolean {
  if (entry.state === "running") return !view.sandboxes.has(entry.id);
  return entry.state === "paused" && (entry.imageId === null || !view.images.has(entry.imageId));
}

/** The longest time that an operation may take. After this it counts as abandoned, although its process is alive. */
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
