import type { Clock } from "@skerry/base";
import type { IdentityRepository, Team } from "@skerry/store";
import { invalid, publicError } from "../errors.ts";
import type { Caller } from "../keys/authenticate.ts";
import { API_KEY_PREFIX, credentialOf, makeApiKey } from "../keys/credential.ts";

export interface TeamWithKey {
  readonly team: Team;
  readonly isDefault: boolean;
  /** In clear; only its hash is stored. */
  readonly apiKey: string;
}

/** Which teams a caller belongs to, and their keys. */
export class TeamService {
  readonly #identity: IdentityRepository;
  readonly #clock: Clock;
  constructor(deps: { readonly identity: IdentityRepository; readonly clock: Clock }) {
    this.#identity = deps.identity;
    this.#clock = deps.clock;
  }

  /** The teams that the caller acts for: a key's team, or all teams of a user. */
  async teamsOf(caller: Caller): Promise<readonly Team[]> {
    if (caller.kind === "team") return [caller.team];
    if (caller.kind !== "user") return [];
    return (await this.#identity.listMemberships(caller.userId)).map(({ team }) => team);
  }

  /** The team that the caller names, or their first one. Throws when the caller does not belong to it. */
  async choose(caller: Caller, teamId: string | undefined): Promise<Team> {
    if (caller.kind === "team" && teamId !== undefined && teamId !== caller.team.id)
      throw invalid("Team ID param mismatch with the API key");
    const teams = await this.teamsOf(caller);
    const chosen = teamId === undefined ? teams[0] : teams.find(({ id }) => id === teamId);
    if (chosen) return chosen;
    throw publicError("forbidden", teamId === undefined ? "You don't have access to any teams" : "You are not allowed to access this team");
  }

  /** A user's teams, each with a new key: only hashes are stored, so an existing key can't be shown again. */
  async listWithNewKeys(caller: Caller): Promise<readonly TeamWithKey[]> {
    if (caller.kind !== "user") return [];
    const memberships = await this.#identity.listMemberships(caller.userId);
    return await Promise.all(
      memberships.map(async (membership) => {
        const key = makeApiKey();
        const about = { prefix: API_KEY_PREFIX, name: "made for the command line", now: this.#clock.now() };
        await this.#identity.addApiKey({ ...credentialOf(key, about), teamId: membership.team.id, createdBy: caller.userId });
        return { ...membership, apiKey: key.reveal() };
      }),
    );
  }
}
