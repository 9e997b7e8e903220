import type { Clock } from "@skerry/base";
import type { LogLine, LogWindow, SandboxLogRepository, Team } from "@skerry/store";

/** What a caller gets who names no beginning. */
const WINDOW_MS = 7 * 24 * 3_600_000;

export interface LogServiceDeps {
  readonly sandboxLogs: SandboxLogRepository;
  readonly clock: Clock;
}

/** The logs of sandboxes, for their owners. The log of an unknown sandbox is empty. */
export class LogService {
  readonly #deps: LogServiceDeps;
  constructor(deps: LogServiceDeps) {
    this.#deps = deps;
  }

  async read(team: Team, sandboxId: string, window: Omit<LogWindow, "cursor"> & { readonly cursor: number | undefined }) {
    const { sandboxLogs, clock } = this.#deps;
    const cursor = window.cursor ?? (window.direction === "forward" ? clock.now() - WINDOW_MS : Number.MAX_SAFE_INTEGER);
    if (window.limit === 0) return [] as readonly LogLine[];
    return await sandboxLogs.read({ sandboxId, teamId: team.id }, { ...window, cursor });
  }
}
