// Collects the complete lines of the audit log and writes them together, many times a second at most. A line of a change has its begun line
// in the database already, so a crash loses no change: its outcome is unknown then. A crash loses refusals of the last moment.
// Failure policy: while the database is away, lines wait. Then every request is refused before it begins, and refusals are few
// (`repeats.ts`), so few lines can come.

import type { Clock, Logger } from "@skerry/base";
import type { AuditRepository, NewAuditLine } from "@skerry/store";
import type { Liveness } from "../liveness.ts";
import { RepeatedWork } from "../repeated-work.ts";
import type { Answer, AuditedRequest } from "./audited-request.ts";
import { Repeats } from "./repeats.ts";

/** The longest time between an answer and its line. */
const WRITE_MS = 200;
/** Lines that wait at most; more are counted. */
const MAX_WAITING = 100_000;
/** Pause between two deletions of one round, so that they do not hold up the requests. */
const PAUSE_MS = 50;

export interface AuditTrailDeps {
  readonly audit: AuditRepository;
  readonly liveness: Pick<Liveness, "isDead" | "isUnknownSince">;
  /** The name of this run of the process. */
  readonly run: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly keepMs: number;
  readonly maxLines: number;
  /** Interval between two looks for what is to be completed or deleted. */
  readonly lookMs: number;
}

export class AuditTrail {
  readonly #deps: AuditTrailDeps;
  readonly #repeats = new Repeats();
  #waiting: NewAuditLine[] = [];
  #lost = 0;
  #writeTimer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();
  readonly #looks: RepeatedWork<number>;
  #isStopped = true;
  #isAway = false;
  readonly #foreign = new Map<string, number>();
  constructor(deps: AuditTrailDeps) {
    this.#deps = deps;
    this.#looks = new RepeatedWork({
      work: () => this.look(),
      pauseMs: deps.lookMs,
      pauseAfter: (deleted) => (deleted > 0 ? PAUSE_MS : deps.lookMs),
      onError: (error) => deps.logger.warn({ err: error }, "looking after the audit log failed"),
    });
  }

  start(): void {
    this.#isStopped = false;
    this.#looks.start(0);
  }

  /** Writes what waits. Precondition: no request is under way. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#looks.stop();
    this.#waiting.push(...this.#repeats.take(Number.POSITIVE_INFINITY));
    await this.flush().catch(() => {});
  }

  /** Takes the line of a request that is answered. */
  end(request: AuditedRequest, answer: Answer): void {
    const now = performance.now();
    const line = request.complete(answer, now);
    if (!line) return;
    // What has a begun line made a change, so it gets a line of its own.
    if (line.outcome !== "done" && !request.isWritten && !this.#repeats.admit(line, now)) return;
    this.#push(line);
  }

  /** Writes what waits now. Throws when the database fails; the lines wait on. */
  async flush(): Promise<void> {
    clearTimeout(this.#writeTimer);
    this.#writeTimer = undefined;
    const writing = this.#writing.then(() => this.#write());
    this.#writing = writing.catch(() => {});
    await writing;
  }

  /** Completes the lines of processes that ended, writes what was counted, and deletes what is old. Returns how many were deleted. */
  async look(): Promise<number> {
    const { audit, clock, keepMs, maxLines } = this.#deps;
    for (const line of this.#repeats.take(performance.now())) this.#push(line);
    const lost = await this.#lostRuns();
    while ((await audit.completeLost(lost, clock.now())) > 0);
    return await audit.trim({ before: clock.now() - keepMs, max: maxLines });
  }

  async #lostRuns(): Promise<readonly string[]> {
    const { audit, liveness, run } = this.#deps;
    const askedAt = performance.now();
    const runs = (await audit.runsWithBegunLines()).filter((other) => other !== run);
    for (const known of this.#foreign.keys()) if (!runs.includes(known)) this.#foreign.delete(known);
    return runs.filter((other) => {
      const since = this.#foreign.get(other) ?? askedAt;
      this.#foreign.set(other, since);
      return isEarlierRun(other, run) || liveness.isDead(other) || liveness.isUnknownSince(other, since);
    });
  }

  #push(line: NewAuditLine): void {
    if (this.#waiting.length >= MAX_WAITING) {
      this.#lost += 1;
      return;
    }
    this.#waiting.push(line);
    this.#scheduleWrite();
  }

  #scheduleWrite(): void {
    if (this.#isStopped || this.#writeTimer) return;
    this.#writeTimer = setTimeout(() => {
      void this.flush().then(
        () => {
          this.#isAway = false;
        },
        (error: unknown) => {
          if (!this.#isAway) this.#deps.logger.warn({ err: error }, "writing the audit log failed; its lines wait");
          this.#isAway = true;
          this.#scheduleWrite();
        },
      );
    }, WRITE_MS);
  }

  async #write(): Promise<void> {
    const lines = this.#waiting;
    if (lines.length === 0) return;
    this.#waiting = [];
    try {
      await this.#deps.audit.append(lines, this.#deps.clock.now());
    } catch (error) {
      this.#waiting = [...lines, ...this.#waiting];
      throw error;
    }
    if (this.#lost > 0)
      this.#deps.logger.error({ lines: this.#lost }, "lines of the audit log were lost: too many waited for the database");
    this.#lost = 0;
  }
}

/** A process has one run at a time. */
function isEarlierRun(other: string, run: string): boolean {
  const ownerOf = (id: string) => id.slice(0, id.lastIndexOf("/"));
  return ownerOf(other) === ownerOf(run);
}
