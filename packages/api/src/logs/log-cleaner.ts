// Deletes log lines that are too old, and logs of teams that have too many: logs of sandboxes, and of what they reached.

import type { Clock, Logger } from "@skerry/base";
import type { EgressRepository, SandboxLogRepository } from "@skerry/store";
import { RepeatedWork } from "../repeated-work.ts";

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
  readonly #rounds: RepeatedWork;
  constructor(deps: LogCleanerDeps) {
    this.#deps = deps;
    this.#rounds = new RepeatedWork({
      work: () => this.look(),
      pauseMs: deps.lookMs,
      onError: (error) => deps.logger.warn({ err: error }, "deleting old logs failed"),
    });
  }

  start(): void {
    this.#rounds.start();
  }

  async stop(): Promise<void> {
    await this.#rounds.stop();
  }

  async look(): Promise<void> {
    const { sandboxLogs, egress, clock, keepMs, keepCountsMs, maxTeamCharacters } = this.#deps;
    const now = clock.now();
    await sandboxLogs.forget({ before: now - keepMs, maxTeamCharacters });
    await egress.forget({ linesBefore: now - keepMs, countsBefore: now - keepCountsMs, maxTeamLines: MAX_TEAM_LINES });
  }
}
