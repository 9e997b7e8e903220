import type { Clock } from "@skerry/base";
import type { EgressRepository, EgressWindow, Team } from "@skerry/store";
import type { TimeRange } from "../metrics/down-sample.ts";

const DAY_MS = 24 * 3_600_000;
/** What a caller gets who names no start. */
const TEAM_RANGE_MS = 7 * DAY_MS;
/** Longest range of a team, because it has a row for each five minutes. */
const MAX_TEAM_RANGE_MS = 31 * DAY_MS;

/** What sandboxes and teams reached, for their owners. The log of an unknown sandbox is empty. */
export class EgressService {
  readonly #egress: EgressRepository;
  readonly #clock: Clock;
  constructor({ egress, clock }: { readonly egress: EgressRepository; readonly clock: Clock }) {
    this.#egress = egress;
    this.#clock = clock;
  }

  async ofSandbox(team: Team, sandboxId: string, window: EgressWindow) {
    const owner = { sandboxId, teamId: team.id };
    // The totals first, so that they never count what a later page has.
    const totals = await this.#egress.totals(owner);
    return { totals, lines: await this.#egress.read(owner, window) };
  }

  /** In steps of five minutes, the oldest first. */
  async ofTeam(team: Team, range: Partial<TimeRange>) {
    const now = this.#clock.now();
    const end = Math.min(range.end ?? now, now);
    const start = Math.max(range.start ?? end - TEAM_RANGE_MS, end - MAX_TEAM_RANGE_MS);
    return start > end ? [] : await this.#egress.ofTeam(team.id, { start, end });
  }
}
