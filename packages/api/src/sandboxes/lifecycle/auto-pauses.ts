// Pauses sandboxes whose time is over and that are to be paused then, so many at a time on a node.
// Failure policy: one that could not be paused runs on with its time over, and is tried again, waiting longer each time. A guest could
// outlive any timeout like that on purpose, with something open that can't be saved, or an agent that is stopped. So where it was the
// guest's doing for a grace period, it is paused the other way (without the memory that can't be saved, or with it where its agent
// does not answer), and killed only if that fails by its doing too. Other failures take no part in that: they are not its fault.

import type { Sandbox, SandboxEntry } from "@skerry/store";
import { isGuestsDoing, nodesWords } from "../../nodes/node-error.ts";
import { NodeTurns } from "../../nodes/node-queue.ts";
import type { SandboxDeps } from "../deps.ts";
import { finishPause, newImage } from "../pause-sandbox.ts";
import { PLATFORM } from "./moves.ts";

const AT_ONCE = 4;
const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 60_000;
/** What is known of one that somebody else has ended or kept meanwhile. */
const FORGOTTEN_MS = 24 * 3_600_000;

interface Failing {
  /** The end of its time that this is about. */
  readonly endAt: Sandbox["endAt"];
  delayMs: number;
  /** When it failed by the guest's doing first, and why. */
  since?: number;
  why?: string;
  /** Its grace is over: from now on it is tried the other way. */
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

  /** They must be in `pausing`, and this process's. */
  add(sandboxes: readonly SandboxEntry[]): void {
    for (const { id, nodeId } of sandboxes) {
      // In the queue they are being worked on too: however long that takes, nobody else settles them.
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

  /** Finishes the pauses under way. What is left stays in `pausing` for the next process, which finds that it runs. */
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
    if (losesMemory)
      logger.warn({ sandbox_id: id, memory_lost_reason: failing.why }, "a sandbox whose time is over was paused without its memory");
  }

  /** Its time has been over, and pausing it the way that it is to be paused has failed by its own doing, for longer than it may. */
  #hasOutlived({ since }: Failing): boolean {
    return since !== undefined && this.#deps.clock.now() - since >= this.#deps.timing.autoPauseGraceMs;
  }

  /** Afresh for one that was kept, and whose time is over anew. */
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
      this.#deps.logger.warn({ err: failure, sandbox_id: id }, "putting off a pause failed");
    }
  }

  /** False when it does not run, or its time is not over any more. */
  async #kill(id: string, { endAt, why }: Failing): Promise<boolean> {
    const { store, kills, clock, logger } = this.#deps;
    const sandbox = await store.sandboxes.find(id);
    if (sandbox?.state !== "running" || sandbox.endAt !== endAt || endAt === null || endAt > clock.now()) return false;
    const begun = await kills.begin(sandbox, "expire", { reason: "timeout", actor: PLATFORM });
    if (begun.kind !== "moved") return false;
    logger.warn({ sandbox_id: id, reason: why }, "a sandbox whose time is over could not be paused in any way, and is killed");
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
    // The end of its grace is not slept through.
    if (failing?.since !== undefined && failing.since + timing.autoPauseGraceMs > now)
      delayMs = Math.min(delayMs, failing.since + timing.autoPauseGraceMs - now);
    logger.warn({ err: error, sandbox_id: id, retry_ms: delayMs }, "a sandbox whose time is over could not be paused and runs on");
    await store.sandboxes.putOffExpiry(id, now + delayMs);
    for (const [one, { endAt }] of this.#failing)
      if (endAt !== null && now - endAt > FORGOTTEN_MS + timing.autoPauseGraceMs) this.#failing.delete(one);
  }
}
