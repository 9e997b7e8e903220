// Enforces the memory limits of sandboxes. A sandbox that exceeds its limit loses its largest process, and keeps running.
//
// With the kernel's limit alone, a gVisor sandbox may end as a whole at its limit, and a runc sandbox stands still for seconds first. Therefore
// the guard reads the memory of each cgroup as often as the cgroup could have reached its limit, and tells the agent to kill the largest process.
// A sandbox that is faster reaches the kernel's limit, which is higher. The kernel then kills processes of the guest first: the same outcome,
// with less choice. So no sandbox depends on the speed of this process, or on it running at all.

import { asError, type Logger } from "@skerry/base";
import { cgroupProcesses, MemoryGroup, sacrificeGuestsFirst } from "@skerry/runtime";
import { type KilledProcess, relieve, shownProcesses } from "../agent/relieve.ts";
import type { GuardDeps, GuardedSandbox } from "./guarded-sandbox.ts";
import { nextLookMs } from "./next-look.ts";
import { withUrgency } from "./urgency.ts";

const MIB = 1024 * 1024;
/** Memory that is freed beyond the excess, so that the next small allocation does not exceed the limit again. */
const SPARE_BYTES = 16 * MIB;
/** How long the other processes may continue to grow until the memory of killed processes is free. */
const LEAD_MS = 150;
/** Decay of the highest measured growth rate from one check to the next, because programs do not grow evenly. */
const SPEED_KEPT = 0.8;
/** How long the guard waits after a kill, and after each decrease of the memory, before it kills again. */
const SETTLE_MS = 30;
/** Rate at which killed processes free their memory: 560 MB took 0.3 s in gVisor on a busy host. It extends the wait for large processes. */
const SETTLED_BYTES_PER_MS = 2 * MIB;
const MAX_SETTLE_MS = 1_000;
/** The same wait after the kernel killed a process. The kernel does not report the size. */
const SETTLE_AFTER_KERNEL_MS = 100;
/** After exceeding the limit for this long, processes are killed even when they do not hold the excess. */
const INSIST_MS = 1_000;
/**
 * After exceeding the limit for this long without a process to kill, the sandbox ends. Either its agent does not answer, or no process owns the
 * memory.
 */
const HOPELESS_MS = 10_000;
/** Minimum interval between log entries about kills of the kernel. */
const TELL_INTERVAL_MS = 1_000;
const RECENT_MS = 5_000;
/** Wait after an unexpected error. */
const RETRY_MS = 500;
/** Names of killed processes in one log entry. A guest must not be able to fill the log. */
const MAX_NAMED = 20;

interface Watched {
  readonly sandbox: GuardedSandbox;
  readonly group: MemoryGroup;
  nextLookAt: number;
  /** The counter at the last check at which the sandbox exceeded its limit. */
  kernelKillsSeen: number;
  kernelKills: number;
  kernelKillsToldAt: number;
  lastKernelKillAt: number;
  /** When the sandbox began to exceed its limit without a process being killed. */
  helplessSince: number | undefined;
  settledAt: number;
  lastLookAt: number;
  lastHeld: number;
  /** The recent growth rate. */
  bytesPerMs: number;
  isRelieving: boolean;
}

export class MemoryGuard {
  readonly #logger: Logger;
  readonly #tell: GuardDeps["tell"];
  readonly #watched = new Map<string, Watched>();
  #timer: NodeJS.Timeout | undefined;

  constructor({ logger, tell }: GuardDeps) {
    this.#logger = logger;
    this.#tell = tell;
  }

  /** Preconditions: the sandbox and its agent run. A second call for a key starts anew. */
  watch(sandbox: GuardedSandbox): void {
    this.unwatch(sandbox.key);
    try {
      this.#watch(sandbox);
    } catch (error) {
      // The sandbox has ended, or the host has no memory cgroups: then only the host's memory limits it.
      this.#logger.error({ sandbox_id: sandbox.identity().sandboxId, err: asError(error) }, "the memory of a sandbox cannot be guarded");
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
      this.#logger.warn({ err: asError(error) }, "the memory of an ended sandbox could not be read");
    } finally {
      watched.group.close();
    }
  }

  /** Whether the kernel recently killed a process of the sandbox for its memory. This may be why the sandbox ended. */
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
      this.#logger.error(
        { sandbox_id: watched.sandbox.identity().sandboxId, err: asError(error) },
        "the memory of a sandbox could not be read",
      );
    }
  }

  #look(watched: Watched, now: number): void {
    const { sandbox, group } = watched;
    if (now - watched.kernelKillsToldAt >= TELL_INTERVAL_MS) this.#tellKernelKills(watched);
    // The charged memory is cheap to read, and never less than the memory in use.
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
      this.#tell(sandboxId, `Ended, because the sandbox was over its memory: ${shownProcesses(killed)}`);
    } catch (error) {
      this.#logger.warn({ ...facts, err: asError(error) }, "a sandbox exceeds its memory limit, and its agent does not answer");
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
    this.#tell(sandboxId, "The sandbox is ended: it is over its memory, and ending processes brings none back");
    this.unwatch(sandbox.key);
    sandbox.onFatal();
  }

  /** Logs kills of the kernel. The kernel reports their number here, and the processes only in its own log. */
  #tellKernelKills(watched: Watched): void {
    const now = performance.now();
    const kills = watched.group.kernelKills();
    watched.kernelKillsToldAt = now;
    // A lower number: the cgroup is gone.
    if (kills <= watched.kernelKills) return;
    this.#logger.warn(
      { sandbox_id: watched.sandbox.identity().sandboxId, processes: kills - watched.kernelKills },
      "processes ended by the kernel: their sandbox was out of memory",
    );
    this.#tell(
      watched.sandbox.identity().sandboxId,
      `${kills - watched.kernelKills} processes ended, because the sandbox was out of memory`,
    );
    watched.kernelKills = kills;
    watched.lastKernelKillAt = now;
  }
}

function settleTimeMs(killed: readonly KilledProcess[]): number {
  const bytes = killed.reduce((sum, one) => sum + one.bytes, 0);
  return Math.min(SETTLE_MS + bytes / SETTLED_BYTES_PER_MS, MAX_SETTLE_MS);
}
