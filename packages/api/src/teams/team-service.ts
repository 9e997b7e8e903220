import { type Clock, currentRequest } from "@skerry/base";
import type { IdentityRepository, Membership, Role, Team } from "@skerry/store";
import { invalid, publicError } from "../errors.ts";
import { assertRole, type Caller, roleAllows, type UserCaller } from "../keys/caller.ts";
import { API_KEY_PREFIX, credentialOf, makeApiKey } from "../keys/credential.ts";
import { assertStanding, isStandingEnough } from "./standing.ts";

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

  /** The teams that the caller acts for: a key's team, or those of a user whose role allows the operation. */
  async teamsOf(caller: Caller): Promise<readonly Team[]> {
    if (caller.kind === "team") return [caller.team];
    if (caller.kind !== "user") return [];
    const memberships = await this.#identity.listMemberships(caller.userId);
    const allowed = memberships.filter(({ team, role }) => roleAllows(role, caller.needs) && isStandingEnough(team, caller.mayBlocked));
    const [first] = memberships;
    if (allowed.length === 0 && first) assertMember(first, caller);
    return allowed.map(({ team }) => team);
  }

  /** The team that the caller names, or their first one. Throws when the caller does not belong to it, or the role does not allow the operation. */
  async choose(caller: Caller, teamId: string | undefined): Promise<Team> {
    return (await this.membershipOf(caller, teamId)).team;
  }

  /** The same, with the caller's role. The operator, who names the team, has the rights of an owner. */
  async membershipOf(caller: Caller, teamId: string | undefined): Promise<{ readonly team: Team; readonly role: Role }> {
    if (caller.kind === "team") {
      if (teamId !== undefined && teamId !== caller.team.id) throw invalid("Team ID param mismatch with the API key");
      return { team: caller.team, role: caller.role ?? "owner" };
    }
    if (caller.kind === "admin") {
      const team = teamId === undefined ? undefined : await this.#identity.findTeam(teamId);
      if (!team) throw publicError("not_found", "Team not found");
      return { team, role: "owner" };
    }
    const memberships = caller.kind === "user" ? await this.#identity.listMemberships(caller.userId) : [];
    const chosen = teamId === undefined ? memberships[0] : memberships.find(({ team }) => team.id === teamId);
    if (!chosen) {
      throw publicError(
        "forbidden",
        teamId === undefined ? "You don't have access to any teams" : "You are not allowed to access this team",
      );
    }
    currentRequest()?.audit?.noteTeam(chosen.team.id);
    if (caller.kind === "user") assertMember(chosen, caller);
    return chosen;
  }

  /** A user's teams, with the user's roles. */
  async memberships(userId: string): Promise<readonly Membership[]> {
    return await this.#identity.listMemberships(userId);
  }

  /**
   * A user's teams, each with a new key: only hashes are stored, so an existing key can't be shown again. The keys may do no more than the user's
   * credential and, at any time, the user's role; they expire with the credential and go with the membership.
   */
  async listWithNewKeys(caller: Caller): Promise<readonly TeamWithKey[]> {
    if (caller.kind !== "user") return [];
    const memberships = await this.#identity.listMemberships(caller.userId);
    return await Promise.all(
      memberships
        .filter(({ team }) => team.standing !== "banned")
        .map(async (membership) => {
          const key = makeApiKey();
          const about = { prefix: API_KEY_PREFIX, name: "made for the command line", now: this.#clock.now() };
          const scopes = caller.scopes.includes("*") ? null : caller.scopes;
          await this.#identity.addApiKey({
            ...credentialOf(key, about),
            teamId: membership.team.id,
            createdBy: caller.userId,
            memberId: caller.userId,
            expiresAt: caller.expiresAt,
            scopes,
          });
          return { ...membership, apiKey: key.reveal() };
        }),
    );
  }
}

function assertMember({ team, role }: Membership, { needs, mayBlocked }: UserCaller): void {
  assertStanding(team, mayBlocked);
  assertRole(role, needs);
}
