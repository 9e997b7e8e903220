// Keeps the sandboxes of this machine within their memory: over its limit, a sandbox loses its largest process and lives.
//
// Left to the host, a gVisor sandbox that reaches its limit may end as a whole, and one on the host's kernel stands still for
// seconds first. So each group is looked at, as often as it could have reached its limit since the last look, and the agent is
// told to end the largest process. What is faster than that runs into the kernel's limit above, where the guest's processes are
// marked to go first: the same outcome, with less choice. So nothing depends on this process being quick, or running at all.

import { asError, type Logger } from "@skerry/base";
import { cgroupProcesses, MemoryGroup, sacrificeGuestsFirst } from "@skerry/runtime";
import { type KilledProcess, relieve } from "../agent/relieve.ts";
import type { GuardedSandbox } from "./guarded-sandbox.ts";
import { nextLookMs } from "./next-look.ts";
import { withUrgency } from "./urgency.ts";

const MIB = 1024 * 1024;
/** Ended beyond what is needed, so that the next process to take a little is not the next to go. */
const SPARE_BYTES = 16 * MIB;
/** For so long those that are not ended go on as before, until the memory of those that are is back. */
const LEAD_MS = 150;
/** What is left of the highest speed seen by the next look: programs do not grow evenly. */
const SPEED_KEPT = 0.8;
/** How much later the next processes may go after the last ones have, and after the last sign that memory comes back. */
const SETTLE_MS = 30;
/** And by how much memory that was: 560 MB have been seen to take 0.3 s, in gVisor on a busy machine. */
const SETTLED_BYTES_PER_MS = 2 * MIB;
const MAX_SETTLE_MS = 1_000;
/** The same after the kernel has ended a process, of a size that it does not tell. */
const SETTLE_AFTER_KERNEL_MS = 100;
/** Over the limit for that long: somebody is ended even when all processes together do not hold what is too much. */
const INSIST_MS = 1_000;
/** Over the limit for that long with nothing that could be ended: the agent does not answer, or the memory is no process's. */
const HOPELESS_MS = 10_000;
/** How often it is told what the kernel has ended. */
const TELL_INTERVAL_MS = 1_000;
const RECENT_MS = 5_000;
/** After something failed that should not. */
const RETRY_MS = 500;
/** Of what was ended at once: a guest must not fill the log. */
const MAX_NAMED = 20;

interface Watched {
  readonly sandbox: GuardedSandbox;
  readonly group: MemoryGroup;
  nextLookAt: number;
  /** As of the last look at which it was over its limit. */
  kernelKillsSeen: number;
  kernelKills: number;
  kernelKillsToldAt: number;
  lastKernelKillAt: number;
  /** Since when it has been over its limit, and nothing was ended. */
  helplessSince: number | undefined;
  settledAt: number;
  lastLookAt: number;
  lastHeld: number;
  /** How fast it has grown lately. */
  bytesPerMs: number;
  isRelieving: boolean;
}

export class MemoryGuard {
  readonly #logger: Logger;
  readonly #watched = new Map<string, Watched>();
  #timer: NodeJS.Timeout | undefined;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Preconditions: it runs, and so does its agent. Watching a key again begins afresh. */
  watch(sandbox: GuardedSandbox): void {
    this.unwatch(sandbox.key);
    try {
      this.#watch(sandbox);
    } catch (error) {
      // It ended meanwhile, or this host has no memory groups: the host's own memory is then all that holds it.
      this.#logger.error({ sandbox_id: sandbox.identity().sandboxId, err: asError(error) }, "sandbox without a memory guard");
    }
  }

  watches(key: string): boolean {
    return this.#watched.has(key);
  }

  #watch(sandbox: GuardedSandbox): void {
    if (sandbox.runtime === "gvisor") sacrificeGuestsFirst(() => cgroupProcesses(sandbox.cgroupPath));
    const group = MemoryGroup.open(sandbox.cgroupPath);
    this.#watched.set(sandbox.key, {
      sandbox,
      group,
      nextLookAt: 0,
      kernelKillsSeen: group.kernelKills(),
      kernelKills: group.kernelKills(),
      kernelKillsToldAt: 0,
      lastKernelKillAt: Number.NEGATIVE_INFINITY,
      helplessSince: undefined,
      settledAt: 0,
      lastHeld: 0,
      lastLookAt: 0,
      bytesPerMs: 0,
      isRelieving: false,
    });
    this.#schedule(0);
  }

  unwatch(key: string): void {
    const watched = this.#watched.get(key);
    if (!watched) return;
    this.#watched.delete(key);
    try {
      this.#tellKernelKills(watched);
    } catch (error) {
      this.#logger.warn({ err: asError(error) }, "a sandbox's memory could not be read at its end");
    } finally {
      watched.group.close();
    }
  }

  /** Whether the kernel has ended something in this sandbox for its memory a moment ago: why it may have ended as a whole. */
  isOutOfMemory(key: string): boolean {
    const watched = this.#watched.get(key);
    if (!watched) return false;
    const { group, kernelKills, lastKernelKillAt } = watched;
    return group.kernelKills() > kernelKills || performance.now() - lastKernelKillAt < RECENT_MS;
  }

  close(): void {
    for (const key of [...this.#watched.keys()]) this.unwatch(key);
    clearTimeout(this.#timer);
  }

  #schedule(inMs: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#lookAtDue(), inMs);
    this.#timer.unref();
  }

  #lookAtDue(): void {
    const now = performance.now();
    let next = Number.POSITIVE_INFINITY;
    for (const watched of this.#watched.values()) {
      if (watched.nextLookAt <= now) this.#tryToLook(watched, now);
      next = Math.min(next, watched.nextLookAt);
    }
    if (next < Number.POSITIVE_INFINITY) this.#schedule(Math.max(0, next - performance.now()));
  }

  #tryToLook(watched: Watched, now: number): void {
    try {
      this.#look(watched, now);
    } catch (error) {
      watched.nextLookAt = now + RETRY_MS;
      this.#logger.error({ sandbox_id: watched.sandbox.identity().sandboxId, err: asError(error) }, "a sandbox's memory could not be read");
    }
  }

  #look(watched: Watched, now: number): void {
    const { sandbox, group } = watched;
    if (now - watched.kernelKillsToldAt >= TELL_INTERVAL_MS) this.#tellKernelKills(watched);
    // All that is charged is one cheap number, and never less than what is held.
    const usage = group.usageBytes();
    const limitBytes = sandbox.limitBytes();
    const held = usage <= limitBytes ? usage : group.heldBytes();
    watched.nextLookAt = now + nextLookMs(held, limitBytes);
    const change = held - watched.lastHeld;
    watched.bytesPerMs = Math.max(change / Math.max(now - watched.lastLookAt, 1), watched.bytesPerMs * SPEED_KEPT, 0);
    watched.lastHeld = held;
    watched.lastLookAt = now;
    if (held <= limitBytes) {
      watched.helplessSince = undefined;
      return;
    }
    watched.helplessSince ??= now;
    const kills = group.kernelKills();
    if (kills > watched.kernelKillsSeen) watched.settledAt = now + SETTLE_AFTER_KERNEL_MS;
    watched.kernelKillsSeen = kills;
    if (change < 0) watched.settledAt = Math.max(watched.settledAt, now + SETTLE_MS);
    if (watched.isRelieving || now < watched.settledAt) return;
    if (now - watched.helplessSince > HOPELESS_MS) this.#giveUp(watched, held);
    else void this.#relieve(watched, held);
  }

  /** Never throws. */
  async #relieve(watched: Watched, held: number): Promise<void> {
    const { address } = watched.sandbox;
    const limitBytes = watched.sandbox.limitBytes();
    const { sandboxId, accessToken } = watched.sandbox.identity();
    const facts = { sandbox_id: sandboxId, held_bytes: held, limit_bytes: limitBytes };
    watched.isRelieving = true;
    let settleMs = RETRY_MS;
    const startedAt = performance.now();
    const insist = watched.helplessSince !== undefined && startedAt - watched.helplessSince > INSIST_MS;
    try {
      const relief = { bytes: Math.ceil(held - limitBytes + SPARE_BYTES + watched.bytesPerMs * LEAD_MS), insist };
      const killed = await withUrgency(watched.sandbox, this.#logger, () => relieve({ address, accessToken }, relief));
      if (killed.length === 0) {
        if (insist) throw new Error("it ended nothing");
        settleMs = SETTLE_MS;
        return;
      }
      watched.helplessSince = undefined;
      settleMs = settleTimeMs(killed);
      const durationMs = Math.round(performance.now() - startedAt);
      const named = killed.slice(0, MAX_NAMED).map(({ pid, name, bytes }) => ({ pid, command: name, bytes }));
      this.#logger.warn(
        { ...facts, processes: killed.length, killed: named, duration_ms: durationMs },
        "processes ended: their sandbox was over its memory",
      );
    } catch (error) {
      this.#logger.warn({ ...facts, err: asError(error) }, "a sandbox is over its memory, and its agent does not help");
    } finally {
      watched.isRelieving = false;
      watched.settledAt = performance.now() + settleMs;
    }
  }

  #giveUp(watched: Watched, held: number): void {
    const { sandbox } = watched;
    const { sandboxId } = sandbox.identity();
    this.#logger.error(
      { sandbox_id: sandboxId, held_bytes: held, limit_bytes: sandbox.limitBytes(), reason: "memory" },
      "ending processes brings no memory back: the sandbox is ended",
    );
    this.unwatch(sandbox.key);
    sandbox.onFatal();
  }

  /** The kernel says how many it has ended; which, only in its own log. */
  #tellKernelKills(watched: Watched): void {
    const now = performance.now();
    const kills = watched.group.kernelKills();
    watched.kernelKillsToldAt = now;
    // Fewer: the group is gone.
    if (kills <= watched.kernelKills) return;
    this.#logger.warn(
      { sandbox_id: watched.sandbox.identity().sandboxId, processes: kills - watched.kernelKills },
      "processes ended by the kernel: their sandbox was out of memory",
    );
    watched.kernelKills = kills;
    watched.lastKernelKillAt = now;
  }
}

function settleTimeMs(killed: readonly KilledProcess[]): number {
  const bytes = killed.reduce((sum, one) => sum + one.bytes, 0);
  return Math.min(SETTLE_MS + bytes / SETTLED_BYTES_PER_MS, MAX_SETTLE_MS);
}
