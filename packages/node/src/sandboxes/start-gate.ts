import { PlatformError } from "@skerry/base";
import { recordPastSpan } from "@skerry/telemetry";
import { gateRefusals, gateWait } from "../metrics.ts";
import { AdaptiveLimit } from "./adaptive-limit.ts";

interface Waiting {
  readonly go: () => void;
  readonly refuse: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
}

export interface StartGateOptions {
  /** Bounds of the number of parallel starts. The gate finds the best number between them. */
  readonly limit: { readonly min: number; readonly max: number };
  readonly maxWaiting: number;
  /** Longest wait of a start before it is refused. Callers give up after that anyway. */
  readonly maxWaitMs: number;
}

/**
 * Limits the parallel starts. The others wait. Groups of starts take turns: the next start is the oldest one of the group with the fewest
 * starts under way, and among equals of the group whose turn was longest ago. So the burst of one group delays the starts of another group by
 * one start at most. Starts that would wait too long are refused, because they would slow down all others.
 */
export class StartGate {
  readonly #options: StartGateOptions;
  readonly #limit: AdaptiveLimit;
  /** By group, the one whose turn was longest ago first. No group is empty. */
  readonly #waiting = new Map<string, Set<Waiting>>();
  #waitingCount = 0;
  /** Starts under way, by group. */
  readonly #running = new Map<string, number>();
  #runningCount = 0;

  constructor(options: StartGateOptions) {
    this.#options = options;
    this.#limit = new AdaptiveLimit(options.limit);
  }

  get counts(): { readonly running: number; readonly waiting: number; readonly limit: number } {
    return { running: this.#runningCount, waiting: this.#waitingCount, limit: this.#limit.value };
  }

  get isIdle(): boolean {
    return this.#runningCount === 0;
  }

  /** Runs a start in its turn. Throws PlatformError("capacity_unavailable") when the turn does not come in time. */
  async run<T>(group: string, work: () => Promise<T>): Promise<T> {
    const askedAt = performance.now();
    if (this.#runningCount >= this.#limit.value) await this.#wait(group);
    else this.#begin(group);
    const waitedMs = performance.now() - askedAt;
    gateWait.observe(waitedMs / 1000);
    recordPastSpan({ name: "wait for a turn" }, waitedMs);
    try {
      return await work();
    } finally {
      this.#end(group);
      this.#limit.done({ isSaturated: this.#waitingCount > 0, now: performance.now() });
      this.#admit();
    }
  }

  #wait(group: string): Promise<void> {
    if (this.#waitingCount >= this.#options.maxWaiting && !this.#makeRoomFor(group)) {
      return Promise.reject(tooMany(`${this.#waitingCount} starts wait already`));
    }
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#leave(group, waiting);
        reject(tooMany(`not its turn in ${this.#options.maxWaitMs} ms`));
      }, this.#options.maxWaitMs);
      const waiting: Waiting = { go: resolve, refuse: reject, timer };
      const others = this.#waiting.get(group);
      if (others) others.add(waiting);
      else this.#waiting.set(group, new Set([waiting]));
      this.#waitingCount += 1;
    });
  }

  /** Refuses the newest start of the group with the most waiting starts. Returns false when this would only exchange the groups. */
  #makeRoomFor(group: string): boolean {
    const own = this.#waiting.get(group)?.size ?? 0;
    const [largest, starts] = [...this.#waiting].reduce((a, b) => (b[1].size > a[1].size ? b : a), ["", new Set<Waiting>()]);
    const newest = [...starts].at(-1);
    if (!newest || starts.size <= own + 1) return false;
    this.#leave(largest, newest);
    newest.refuse(tooMany("starts of others wait as well"));
    return true;
  }

  #admit(): void {
    while (this.#waitingCount > 0 && this.#runningCount < this.#limit.value) {
      const group = this.#nextGroup();
      const starts = this.#waiting.get(group);
      const [oldest] = starts ?? [];
      if (!starts || !oldest) return;
      // The place is taken here and not when the waiting start resumes, so no other start can take it in between.
      this.#begin(group);
      this.#leave(group, oldest);
      if (this.#waiting.delete(group)) this.#waiting.set(group, starts);
      oldest.go();
    }
  }

  #nextGroup(): string {
    let next = "";
    let fewest = Number.POSITIVE_INFINITY;
    for (const group of this.#waiting.keys()) {
      const count = this.#running.get(group) ?? 0;
      if (count < fewest) [next, fewest] = [group, count];
    }
    return next;
  }

  #leave(group: string, waiting: Waiting): void {
    clearTimeout(waiting.timer);
    const starts = this.#waiting.get(group);
    if (!starts?.delete(waiting)) return;
    this.#waitingCount -= 1;
    if (starts.size === 0) this.#waiting.delete(group);
  }

  #begin(group: string): void {
    this.#runningCount += 1;
    this.#running.set(group, (this.#running.get(group) ?? 0) + 1);
  }

  #end(group: string): void {
    this.#runningCount -= 1;
    const left = (this.#running.get(group) ?? 1) - 1;
    if (left > 0) this.#running.set(group, left);
    else this.#running.delete(group);
  }
}

function tooMany(why: string): PlatformError {
  gateRefusals.inc();
  return new PlatformError("capacity_unavailable", why, {
    publicMessage: "too many sandboxes are being started on this machine at once: try again in a moment",
  });
}
