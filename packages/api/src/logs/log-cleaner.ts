// Deletes log lines that are too old, and logs of teams that have too many: logs of sandboxes, and of what they reached.

import type { Clock, Logger } from "@skerry/base";
import type { EgressRepository, SandboxLogRepository } from "@skerry/store";

/** Lines of the egress logs of a team: about 30 MiB of the database. */
const MAX_TEAM_LINES = 200_000;

export interface LogCleanerDeps {
  readonly sandboxLogs: SandboxLogRepository;
  readonly egress: EgressRepository;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly keepMs: number;
  /** How long sums of egress are kept. */
  readonly keepCountsMs: number;
  readonly maxTeamCharacters: number;
  readonly lookMs: number;
}

export class LogCleaner {
  readonly #deps: LogCleanerDeps;
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> = Promise.resolve();
  #isStopped = true;
  constructor(deps: LogCleanerDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#isStopped = false;
    this.#schedule();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#looking;
  }

  async look(): Promise<void> {
    const { sandboxLogs, egress, clock, keepMs, keepCountsMs, maxTeamCharacters } = this.#deps;
    const now = clock.now();
    await sandboxLogs.forget({ before: now - keepMs, maxTeamCharacters });
    await egress.forget({ linesBefore: now - keepMs, countsBefore: now - keepCountsMs, maxTeamLines: MAX_TEAM_LINES });
  }

  #schedule(): void {
    if (this.#isStopped) return;
    this.#timer = setTimeout(() => {
      this.#looking = this.look()
        .catch((error: unknown) => this.#deps.logger.warn({ err: error }, "deleting old logs failed"))
        .finally(() => this.#schedule());
    }, this.#deps.lookMs);
  }
}
