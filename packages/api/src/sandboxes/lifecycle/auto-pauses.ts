// Pauses sandboxes whose timeout has passed and that have autoPause. A limited number of pauses runs on each node at the same time.
//
// Failure policy: a sandbox whose pause failed continues to run, and is tried again with a growing back-off. A guest could use this to outlive
// its timeout, with open files that can't be saved or with a stopped agent. When pauses have failed because of the guest for a grace period,
// the sandbox is paused the other way: without the memory that can't be saved, or with memory when its agent does not answer. It is killed only
// when that fails because of the guest too. Failures that the guest did not cause do not count.

import type { Sandbox, SandboxEntry } from "@skerry/store";
import { isGuestsDoing, nodesWords } from "../../nodes/node-error.ts";
import { NodeTurns } from "../../nodes/node-queue.ts";
import type { SandboxDeps } from "../deps.ts";
import { finishPause, newImage } from "../pause-sandbox.ts";
import { PLATFORM } from "./moves.ts";

/** Pauses that run on one node at the same time. Each writes a sandbox's memory to the disk. */
const AT_ONCE = 4;
const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 60_000;
/** How long the state of a failing pause is kept. It bounds the map: a sandbox that was killed or resumed is never asked about again. */
const FORGOTTEN_MS = 24 * 3_600_000;

interface Failing {
  /** The end time that these failures belong to. */
  readonly endAt: Sandbox["endAt"];
  delayMs: number;
  /** When a pause failed because of the guest for the first time, and why. */
  since?: number;
  why?: string;
  /** The grace period has passed: further pauses use the other way. */
  isLastResort?: boolean;
}

export class AutoPauses {
  readonly #deps: SandboxDeps;
  readonly #failing = new Map<string, Failing>();
  readonly #turns = new NodeTurns(AT_ONCE);
  readonly #working = new Set<Promise<void>>();
  #stopped = false;
  constructor(deps: SandboxDeps) {
    this.#deps = deps;
  }

  /** Preconditions: the sandboxes are in `pausing`, and this process owns them. */
  add(sandboxes: readonly SandboxEntry[]): void {
    for (const { id, nodeId } of sandboxes) {
      // A sandbox that waits in the queue counts as being worked on: no reconciliation may settle it meanwhile.
      const done = this.#deps.moves.begin(id);
      const work = this.#turns
        .run(nodeId, () => this.#work(id))
        .finally(() => {
          done();
          this.#working.delete(work);
        });
      this.#working.add(work);
    }
  }

  /** Waits for the pauses that have begun. The others stay in `pausing`; the next process finds out that these sandboxes run. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#working);
  }

  async #work(id: string): Promise<void> {
    if (this.#stopped) return;
    try {
      await this.#pause(id);
      this.#failing.delete(id);
    } catch (error) {
      await this.#afterFailure(id, error);
    }
  }

  async #pause(id: string): Promise<void> {
    const { store, logger } = this.#deps;
    const sandbox = await store.sandboxes.find(id);
    if (sandbox?.state !== "pausing" || sandbox.imageId !== null) return;
    const failing = this.#failingOf(sandbox);
    const memory = failing.isLastResort ? !sandbox.autoPauseMemory : sandbox.autoPauseMemory;
    const image = newImage(this.#deps, sandbox, { kind: "pause", memory });
    if (!(await store.sandboxes.beginImage(id, image))) return;
    const losesMemory = failing.isLastResort && !memory;
    const reason = losesMemory ? (`memory_lost: ${failing.why}` as const) : "timeout";
    await finishPause(this.#deps, { ...sandbox, imageId: image.id }, { memory, requireHealthyGuest: false, actor: PLATFORM, reason });
    if (losesMemory) logger.warn({ sandbox_id: id, memory_lost_reason: failing.why }, "sandbox paused at its timeout without its memory");
  }

  /** Whether pauses have failed because of the guest for longer than the grace period. */
  #hasOutlived({ since }: Failing): boolean {
    return since !== undefined && this.#deps.clock.now() - since >= this.#deps.timing.autoPauseGraceMs;
  }

  /** Starts anew when the end time has changed: the sandbox was kept, and its timeout has passed again. */
  #failingOf({ id, endAt }: Sandbox): Failing {
    const before = this.#failing.get(id);
    if (before?.endAt === endAt) return before;
    const failing = { endAt, delayMs: FIRST_RETRY_MS / 2 };
    this.#failing.set(id, failing);
    return failing;
  }

  async #afterFailure(id: string, error: unknown): Promise<void> {
    const failing = this.#failing.get(id);
    try {
      if (failing && isGuestsDoing(error)) {
        if (failing.isLastResort && (await this.#kill(id, failing))) return;
        failing.since ??= this.#deps.clock.now();
        if (!failing.isLastResort) failing.why = nodesWords(error);
        if (this.#hasOutlived(failing)) {
          failing.isLastResort = true;
          failing.delayMs = FIRST_RETRY_MS / 2;
        }
      }
      await this.#putOff(id, error);
    } catch (failure) {
      this.#deps.logger.warn({ err: failure, sandbox_id: id }, "the next attempt of a pause could not be scheduled");
    }
  }

  /** Returns false when the sandbox does not run, or its end time has changed. */
  async #kill(id: string, { endAt, why }: Failing): Promise<boolean> {
    const { store, kills, clock, logger } = this.#deps;
    const sandbox = await store.sandboxes.find(id);
    if (sandbox?.state !== "running" || sandbox.endAt !== endAt || endAt === null || endAt > clock.now()) return false;
    const begun = await kills.begin(sandbox, "expire", { reason: "timeout", actor: PLATFORM });
    if (begun.kind !== "moved") return false;
    logger.warn({ sandbox_id: id, reason: why }, "sandbox killed at its timeout because no way to pause it worked");
    this.#failing.delete(id);
    kills.finishInBackground(begun.sandbox);
    return true;
  }

  async #putOff(id: string, error: unknown): Promise<void> {
    const { store, clock, logger, timing } = this.#deps;
    const failing = this.#failing.get(id);
    const now = clock.now();
    let delayMs = Math.min((failing?.delayMs ?? FIRST_RETRY_MS / 2) * 2, LONGEST_RETRY_MS);
    if (failing) failing.delayMs = delayMs;
    // The attempt after the grace period must not wait for the back-off.
    if (failing?.since !== undefined && failing.since + timing.autoPauseGraceMs > now)
      delayMs = Math.min(delayMs, failing.since + timing.autoPauseGraceMs - now);
    logger.warn(
      { err: error, sandbox_id: id, retry_ms: delayMs },
      "pausing a sandbox at its timeout failed; it continues to run and will be tried again",
    );
    await store.sandboxes.putOffExpiry(id, now + delayMs);
    for (const [one, { endAt }] of this.#failing)
      if (endAt !== null && now - endAt > FORGOTTEN_MS + timing.autoPauseGraceMs) this.#failing.delete(one);
  }
}
