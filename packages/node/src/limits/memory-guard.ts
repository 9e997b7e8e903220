// Keeps the sandboxes of this machine within their memory: over its limit, a sandbox loses its largest process and lives.
//
// gVisor gives a guest no memory limit of its own, so each sandbox's group is looked at, as often as it could have reached its
// limit since the last look, and its agent is told to end the largest process. What is faster than that runs into the kernel's
// limit above, where stubs of the guest's processes are marked to go first: the same outcome, with less choice. So nothing
// depends on this process being quick, or running at all.

import { asError, type Logger } from "@skerry/base";
import { cgroupProcesses, MemoryGroup, type RuntimeName, sacrificeGuestsFirst, setNiceness, sparedProcesses } from "@skerry/runtime";
import { nextLookMs } from "./next-look.ts";
import { type KilledProcess, relieve } from "./relieve.ts";

const MIB = 1024 * 1024;
/** Ended beyond what is needed, so that the next process to take a little is not the next to go. */
const SPARE_BYTES = 16 * MIB;
/** After processes were ended, and for as long as memory comes back: the next ones go this much later. */
const SETTLE_MS = 30;
/** Over the limit for that long whatever was ended: nobody's memory is freed by ending processes (System V segments, files in memory). */
const HOPELESS_MS = 10_000;
/** Of gVisor's kernel and the agent, while the agent is asked to help: a hundred programs want the same processors. */
const URGENT = -15;
const NORMAL = 0;
/** How often it is told what the kernel has ended: on the host's own kernel that is all there is to do. */
const TELL_INTERVAL_MS = 1_000;
const RECENT_MS = 5_000;

export interface GuardedSandbox {
  /** Any name that is unique among those watched. What else is known of a sandbox may change while it is. */
  readonly key: string;
  readonly runtime: RuntimeName;
  readonly cgroupPath: string;
  readonly address: string;
  readonly limitBytes: number;
  /** Asked each time, because a sandbox gets its name and token only when somebody claims it. */
  identity(): { readonly sandboxId: string; readonly accessToken: string };
  /** Nothing helps: the sandbox has to end. Called at most once. */
  onFatal(): void;
}

interface Watched {
  readonly sandbox: GuardedSandbox;
  readonly group: MemoryGroup;
  nextLookAt: number;
  kernelKills: number;
  kernelKillsToldAt: number;
  lastKernelKillAt: number;
  /** Since when it has been over its limit, without a pause. */
  overSince: number | undefined;
  settledAt: number;
  lastHeld: number;
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
      kernelKills: group.kernelKills(),
      kernelKillsToldAt: 0,
      lastKernelKillAt: Number.NEGATIVE_INFINITY,
      overSince: undefined,
      settledAt: 0,
      lastHeld: 0,
      isRelieving: false,
    });
    this.#schedule(0);
  }

  unwatch(key: string): void {
    const watched = this.#watched.get(key);
    this.#watched.delete(key);
    watched?.group.close();
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
      if (watched.nextLookAt <= now) this.#look(watched, now);
      next = Math.min(next, watched.nextLookAt);
    }
    if (next < Number.POSITIVE_INFINITY) this.#schedule(Math.max(0, next - performance.now()));
  }

  #look(watched: Watched, now: number): void {
    const { sandbox, group } = watched;
    this.#tellKernelKills(watched, now);
    if (sandbox.runtime !== "gvisor") {
      watched.nextLookAt = now + TELL_INTERVAL_MS;
      return;
    }
    // All that is charged is one cheap number, and never less than what is held.
    const usage = group.usageBytes();
    const held = usage <= sandbox.limitBytes ? usage : group.heldBytes();
    watched.nextLookAt = now + nextLookMs(held, sandbox.limitBytes);
    if (held <= sandbox.limitBytes) {
      watched.overSince = undefined;
      return;
    }
    watched.overSince ??= now;
    if (held < watched.lastHeld) watched.settledAt = now + SETTLE_MS;
    watched.lastHeld = held;
    if (watched.isRelieving || now < watched.settledAt) return;
    if (now - watched.overSince > HOPELESS_MS) this.#giveUp(watched, held);
    else void this.#relieve(watched, held);
  }

  async #relieve(watched: Watched, held: number): Promise<void> {
    const { sandbox } = watched;
    const { sandboxId, accessToken } = sandbox.identity();
    const log = this.#logger.child({ sandbox_id: sandboxId });
    watched.isRelieving = true;
    const spared = sparedProcesses(cgroupProcesses(sandbox.cgroupPath));
    setNiceness(spared, URGENT);
    const startedAt = performance.now();
    try {
      const killed = await relieve({ address: sandbox.address, accessToken }, held - sandbox.limitBytes + SPARE_BYTES);
      for (const one of killed) this.#tellKill(log, one, { held, limitBytes: sandbox.limitBytes, startedAt });
      if (killed.length === 0) log.warn({ held_bytes: held, limit_bytes: sandbox.limitBytes }, "over its memory, and no process to end");
    } catch (error) {
      log.warn({ err: asError(error), held_bytes: held, limit_bytes: sandbox.limitBytes }, "over its memory, and its agent does not help");
    } finally {
      setNiceness(spared, NORMAL);
      watched.isRelieving = false;
      watched.settledAt = performance.now() + SETTLE_MS;
    }
  }

  #giveUp(watched: Watched, held: number): void {
    const { sandbox } = watched;
    const { sandboxId } = sandbox.identity();
    this.#logger.error(
      { sandbox_id: sandboxId, held_bytes: held, limit_bytes: sandbox.limitBytes, reason: "memory" },
      "ending processes brings no memory back: the sandbox is ended",
    );
    this.unwatch(sandbox.key);
    sandbox.onFatal();
  }

  #tellKill(log: Logger, killed: KilledProcess, over: { held: number; limitBytes: number; startedAt: number }): void {
    log.warn(
      {
        pid: killed.pid,
        command: killed.name,
        bytes: killed.bytes,
        held_bytes: over.held,
        limit_bytes: over.limitBytes,
        duration_ms: Math.round(performance.now() - over.startedAt),
      },
      "process ended: its sandbox was over its memory",
    );
  }

  /** The kernel says how many it has ended; which, only in its own log. */
  #tellKernelKills(watched: Watched, now: number): void {
    if (now - watched.kernelKillsToldAt < TELL_INTERVAL_MS) return;
    const kills = watched.group.kernelKills();
    watched.kernelKillsToldAt = now;
    if (kills === watched.kernelKills) return;
    this.#logger.warn(
      { sandbox_id: watched.sandbox.identity().sandboxId, processes: kills - watched.kernelKills },
      "processes ended by the kernel: their sandbox was out of memory",
    );
    watched.kernelKills = kills;
    watched.lastKernelKillAt = now;
  }
}
