// Kills sandboxes that are in the state `killing`. Callers that arrive during a kill wait for the same one.
// Failure policy: after a failed kill the sandbox stays in `killing`, and `retryUnsettled` tries it again with a growing back-off.

import type { Clock, Logger } from "@skerry/base";
import type { EndReason, Sandbox, SandboxEntry, SandboxRepository } from "@skerry/store";
import { killErrorFrom } from "../../nodes/node-error.ts";
import { NodeJobs } from "../../nodes/node-queue.ts";
import type { Nodes } from "../../nodes/nodes.ts";
import type { ImageDeletions } from "../images/image-deletions.ts";
import type { SandboxEvent } from "./lifecycle.ts";
import { type Applied, PLATFORM, type SandboxMoves } from "./moves.ts";

const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 15_000;
const SCAN_LIMIT = 10_000;
const KILLS_AT_ONCE = 32;
/** A time that is further in the future than this was written before the clock was set back. */
const CLOCK_SLACK_MS = 60_000;

export interface KillDeps {
  readonly sandboxes: SandboxRepository;
  readonly nodes: Nodes;
  readonly moves: SandboxMoves;
  readonly images: ImageDeletions;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly killTimeoutMs: number;
}

/** The fields of a sandbox that a kill needs. */
export type Ending = Pick<SandboxEntry, "id" | "nodeId" | "imageId">;

interface Retry {
  readonly notBefore: number;
  readonly delayMs: number;
}

export class SandboxKills {
  readonly #deps: KillDeps;
  readonly #jobs: NodeJobs<Ending>;
  readonly #retries = new Map<string, Retry>();
  constructor(deps: KillDeps) {
    this.#deps = deps;
    this.#jobs = new NodeJobs({
      atOnce: KILLS_AT_ONCE,
      work: (sandbox) => this.#finish(sandbox),
      onFailure: ({ id, nodeId }, error) => {
        deps.logger.warn({ err: error, sandbox_id: id, node_id: nodeId }, "killing a sandbox failed; will be tried again");
      },
    });
  }

  /** Moves a sandbox to `killing` because of `event`, and marks the image of a paused one for deletion. */
  async begin(
    sandbox: Pick<Sandbox, "id" | "state" | "version" | "imageId">,
    event: SandboxEvent,
    by: { readonly reason: EndReason; readonly actor: string },
  ): Promise<Applied> {
    const image = sandbox.imageId === null ? {} : ({ image: { kind: "drop", id: sandbox.imageId } } as const);
    // Only in the version that was read: a sandbox that was paused again since has another image.
    return await this.#deps.moves.apply(sandbox, event, { ...by, ...image, exact: true });
  }

  /** Resolves when nothing of the sandbox is left. Preconditions: it is in `killing`. */
  finish(sandbox: Ending): Promise<void> {
    return this.#jobs.run(sandbox);
  }

  /** Like `finish`, without a caller that waits: failures are logged and tried again, and a node gets a limited number at the same time. */
  finishInBackground(sandbox: Ending): void {
    this.#jobs.runInBackground(sandbox);
  }

  /** Continues, in the background, every kill that no process works on and whose back-off has passed. */
  async retryUnsettled(olderThanMs: number): Promise<void> {
    const { sandboxes, clock } = this.#deps;
    await this.#retry(() => sandboxes.listUnsettled("killing", clock.now() - olderThanMs, SCAN_LIMIT));
  }

  /** Continues, in the background, every kill whose process is dead, whatever its age. */
  async retryOrphaned(): Promise<void> {
    const { sandboxes, moves, clock } = this.#deps;
    await this.#retry(async () => {
      const all = await sandboxes.listUnsettled("killing", Number.MAX_SAFE_INTEGER, SCAN_LIMIT);
      const ahead = clock.now() + CLOCK_SLACK_MS;
      return all.filter((sandbox) => moves.isOrphaned(sandbox.owner) || sandbox.stateChangedAt > ahead);
    });
  }

  async #retry(list: () => Promise<readonly SandboxEntry[]>): Promise<void> {
    // A kill that ends while the list is read is still on it, and would be done a second time.
    const worked = this.#jobs.ids();
    const unsettled = await list();
    const now = this.#deps.clock.now();
    const isDue = ({ notBefore, delayMs }: Retry) => notBefore <= now || notBefore > now + delayMs;
    const due = unsettled.filter(({ id }) => !worked.has(id) && isDue(this.#retries.get(id) ?? { notBefore: 0, delayMs: 0 }));
    for (const sandbox of due) this.finishInBackground(sandbox);
  }

  /** Resolves when all running and queued kills have ended, also those that failed. */
  settled(): Promise<void> {
    return this.#jobs.settled();
  }

  /** Waits for the running kills and begins no others. The rest stays in `killing` for the next process. */
  stop(): Promise<void> {
    return this.#jobs.stop();
  }

  async #finish(sandbox: Ending): Promise<void> {
    try {
      await this.#askNode(sandbox);
    } catch (error) {
      const delayMs = Math.min((this.#retries.get(sandbox.id)?.delayMs ?? FIRST_RETRY_MS / 2) * 2, LONGEST_RETRY_MS);
      this.#retries.set(sandbox.id, { notBefore: this.#deps.clock.now() + delayMs, delayMs });
      throw killErrorFrom(error);
    }
    this.#retries.delete(sandbox.id);
    await this.#deps.moves.apply({ id: sandbox.id, state: "killing", version: 0 }, "gone", { actor: PLATFORM });
  }

  async #askNode(sandbox: Ending): Promise<void> {
    const node = this.#deps.nodes.get(sandbox.nodeId);
    await node.client.killSandbox({ sandboxId: sandbox.id }, { timeoutMs: this.#deps.killTimeoutMs });
    if (sandbox.imageId !== null) await this.#deps.images.finish({ id: sandbox.imageId, nodeId: sandbox.nodeId });
  }
}
