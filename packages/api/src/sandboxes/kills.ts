// Ends what is in state `killing`. Whoever asks while a kill is under way waits for the same one.
// Failure policy: a kill that fails leaves the entry in `killing`; `retryUnsettled` tries it again, waiting longer each time.

import type { Clock, Logger } from "@skerry/base";
import type { EndReason, Sandbox, SandboxEntry, SandboxRepository } from "@skerry/store";
import { findNode } from "../nodes/find-node.ts";
import { killErrorFrom } from "../nodes/node-error.ts";
import type { ImageDeletions } from "./image-deletions.ts";
import type { SandboxEvent } from "./lifecycle.ts";
import { type Applied, PLATFORM, type SandboxMoves } from "./moves.ts";
import type { NodeDirectory } from "./ports.ts";

const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 15_000;
const SCAN_LIMIT = 10_000;
const KILLS_AT_ONCE = 32;
/** What lies further ahead is from before the clock was set back. */
const CLOCK_SLACK_MS = 60_000;

export interface KillDeps {
  readonly sandboxes: SandboxRepository;
  readonly nodes: NodeDirectory;
  readonly moves: SandboxMoves;
  readonly images: ImageDeletions;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly killTimeoutMs: number;
}

/** What it takes to end a sandbox. */
export type Ending = Pick<SandboxEntry, "id" | "nodeId" | "imageId">;

interface Retry {
  readonly notBefore: number;
  readonly delayMs: number;
}

export class SandboxKills {
  readonly #deps: KillDeps;
  readonly #active = new Map<string, Promise<void>>();
  readonly #retries = new Map<string, Retry>();
  readonly #queued = new Set<string>();
  readonly #waiting: (() => void)[] = [];
  #turnsTaken = 0;
  #stopped = false;
  constructor(deps: KillDeps) {
    this.#deps = deps;
  }

  /** Moves a sandbox towards its end because of `event`, and what it was kept in with it. */
  async begin(
    sandbox: Pick<Sandbox, "id" | "state" | "version" | "imageId">,
    event: SandboxEvent,
    by: { readonly reason: EndReason; readonly actor: string },
  ): Promise<Applied> {
    const image = sandbox.imageId === null ? {} : ({ image: { kind: "drop", id: sandbox.imageId } } as const);
    // Exactly as it was read: a sandbox that was paused again since is kept in another image.
    return await this.#deps.moves.apply(sandbox, event, { ...by, ...image, exact: true });
  }

  /** Answers when nothing of the sandbox is left. Its entry must be in `killing`. */
  finish(sandbox: Ending): Promise<void> {
    const active = this.#active.get(sandbox.id);
    if (active) return active;
    const work = this.#finish(sandbox).finally(() => this.#active.delete(sandbox.id));
    this.#active.set(sandbox.id, work);
    return work;
  }

  /** Like `finish`, for when nobody waits: a failure is logged and tried again, and only so many run at once. */
  async finishInBackground(sandbox: Ending): Promise<void> {
    if (this.#active.has(sandbox.id) || this.#queued.has(sandbox.id)) return;
    this.#queued.add(sandbox.id);
    await this.#takeTurn();
    try {
      if (!this.#stopped) await this.finish(sandbox);
    } catch (error) {
      const facts = { err: error, sandbox_id: sandbox.id, node_id: sandbox.nodeId };
      this.#deps.logger.warn(facts, "killing a sandbox failed and will be tried again");
    } finally {
      this.#queued.delete(sandbox.id);
      this.#passTurn();
    }
  }

  /** Takes up every kill that nobody is working on and that has waited long enough. */
  async retryUnsettled(olderThanMs: number): Promise<void> {
    const now = this.#deps.clock.now();
    await this.#retry(await this.#deps.sandboxes.listUnsettled("killing", now - olderThanMs, SCAN_LIMIT));
  }

  /** Takes up every kill whose process is gone, whatever the clock says about its age. */
  async retryOrphaned(): Promise<void> {
    const { sandboxes, moves, clock } = this.#deps;
    const all = await sandboxes.listUnsettled("killing", Number.MAX_SAFE_INTEGER, SCAN_LIMIT);
    const ahead = clock.now() + CLOCK_SLACK_MS;
    await this.#retry(all.filter((sandbox) => moves.isOrphaned(sandbox.owner) || sandbox.stateChangedAt > ahead));
  }

  async #retry(unsettled: readonly SandboxEntry[]): Promise<void> {
    const now = this.#deps.clock.now();
    const isDue = ({ notBefore, delayMs }: Retry) => notBefore <= now || notBefore > now + delayMs;
    const due = unsettled.filter((sandbox) => isDue(this.#retries.get(sandbox.id) ?? { notBefore: 0, delayMs: 0 }));
    await Promise.all(due.map((sandbox) => this.finishInBackground(sandbox)));
  }

  /** Waits for the kills under way and begins no more; what is left stays in `killing` for the next process. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.allSettled(this.#active.values());
  }

  async #takeTurn(): Promise<void> {
    if (this.#turnsTaken >= KILLS_AT_ONCE) return await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#turnsTaken += 1;
  }

  #passTurn(): void {
    const first = this.#waiting.shift();
    if (first) first();
    else this.#turnsTaken -= 1;
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
    const node = findNode(this.#deps.nodes, sandbox.nodeId);
    await node.client.killSandbox({ sandboxId: sandbox.id }, { timeoutMs: this.#deps.killTimeoutMs });
    if (sandbox.imageId !== null) await this.#deps.images.finish({ id: sandbox.imageId, nodeId: sandbox.nodeId });
  }
}
