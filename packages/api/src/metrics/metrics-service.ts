import type { Clock } from "@skerry/base";
import type { SandboxMetric, SandboxMetricRepository, SandboxRepository, Team, TeamMetricRepository } from "@skerry/store";
import { downSample, downSampleTeam, type TeamPoint, type TimeRange } from "./down-sample.ts";

export interface MetricsServiceDeps {
  readonly sandboxes: SandboxRepository;
  readonly sandboxMetrics: SandboxMetricRepository;
  readonly teamMetrics: TeamMetricRepository;
  readonly clock: Clock;
}

export type TeamMaximum = "concurrent_sandboxes" | "sandbox_start_rate";

const DAY_MS = 24 * 3_600_000;
/** What a caller gets who names no start. */
const TEAM_RANGE_MS = 7 * DAY_MS;
/** Longest range of a team, because it has a point for each step. */
const MAX_TEAM_RANGE_MS = 90 * DAY_MS;

/** What sandboxes and teams used, for their owners. */
export class MetricsService {
  readonly #deps: MetricsServiceDeps;
  constructor(deps: MetricsServiceDeps) {
    this.#deps = deps;
  }

  /** Oldest first, for the whole life of the sandbox unless the caller names a range. Nothing for a sandbox of another team. */
  async ofSandbox(team: Team, sandboxId: string, range: Partial<TimeRange>): Promise<readonly SandboxMetric[]> {
    const { sandboxes, sandboxMetrics, clock } = this.#deps;
    const sandbox = await sandboxes.find(sandboxId);
    if (!sandbox || sandbox.teamId !== team.id) return [];
    const start = range.start ?? sandbox.createdAt;
    const end = range.end ?? Math.max(clock.now(), start);
    return downSample(await sandboxMetrics.range(sandboxId, { start, end }), { start, end });
  }

  /** The newest one of each of the team's sandboxes that has any. */
  async newest(team: Team, sandboxIds: readonly string[]): Promise<readonly SandboxMetric[]> {
    return await this.#deps.sandboxMetrics.newest(team.id, sandboxIds);
  }

  async ofTeam(team: Team, range: Partial<TimeRange>): Promise<readonly TeamPoint[]> {
    const now = this.#deps.clock.now();
    const end = Math.min(range.end ?? now, now);
    const wanted = range.start ?? end - TEAM_RANGE_MS;
    const start = Math.max(wanted, end - MAX_TEAM_RANGE_MS);
    if (start > end) return [];
    return downSampleTeam(await this.#deps.teamMetrics.range(team.id, { start, end }), { start, end });
  }

  /** The first point with the largest value; undefined for a range without points. */
  async maximumOfTeam(team: Team, metric: TeamMaximum, range: Partial<TimeRange>): Promise<{ at: number; value: number } | undefined> {
    const read = ({ concurrent, startRate }: TeamPoint) => (metric === "concurrent_sandboxes" ? concurrent : startRate);
    let best: { at: number; value: number } | undefined;
    for (const point of await this.ofTeam(team, range)) {
      const value = read(point);
      if (!best || value > best.value) best = { at: point.at, value };
    }
    return best;
  }
}
