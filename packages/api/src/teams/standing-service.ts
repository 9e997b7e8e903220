import type { IdentityRepository, Team, TeamStanding } from "@skerry/store";
import { invalid, publicError } from "../errors.ts";

export interface ShownStanding {
  readonly teamId: string;
  readonly standing: TeamStanding;
  /** Empty when there is none. */
  readonly reason: string;
}

/** Blocks and bans teams. Counts for the next request of the team, in every process. */
export class StandingService {
  readonly #identity: IdentityRepository;
  constructor(identity: IdentityRepository) {
    this.#identity = identity;
  }

  async of(teamId: string): Promise<ShownStanding> {
    const team = await this.#identity.findTeam(teamId);
    if (!team) throw publicError("not_found", "Team not found");
    return shown(team);
  }

  async set(teamId: string, standing: TeamStanding, reason: string): Promise<ShownStanding> {
    if (standing !== "blocked" && reason !== "") throw invalid("Only a blocked team has a reason");
    if (!(await this.#identity.setStanding(teamId, { standing, reason: reason || null }))) {
      throw publicError("not_found", "Team not found");
    }
    return { teamId, standing, reason };
  }
}

function shown({ id, standing = "active", standingReason }: Team): ShownStanding {
  return { teamId: id, standing, reason: standingReason ?? "" };
}
