import type { Clock } from "@skerry/base";
import type { IdentityRepository, LimitRepository, LimitValues, TeamUse, Tier } from "@skerry/store";
import { invalid, publicError } from "../errors.ts";
import type { Limits } from "./limits.ts";

/** The tier of teams that were not given another one. Its limits are the settings of the platform. */
export const DEFAULT_TIER = "default";

const TIER_NAME = /^[a-z0-9][a-z0-9-]{0,62}$/;

/** A tier, with all limits that its teams get. */
export interface ShownTier {
  readonly name: string;
  /** Those that the tier sets itself. */
  readonly set: LimitValues;
  readonly limits: Limits;
}

export interface ShownTeamLimits {
  readonly teamId: string;
  readonly tier: string;
  readonly overrides: LimitValues;
  readonly limits: Limits;
  readonly use: TeamUse;
}

export interface LimitServiceDeps {
  readonly repository: LimitRepository;
  readonly identity: IdentityRepository;
  readonly defaults: Limits;
  readonly clock: Clock;
}

/** Tiers and teams' limits as the operator sees and sets them. */
export class LimitService {
  readonly #deps: LimitServiceDeps;
  constructor(deps: LimitServiceDeps) {
    this.#deps = deps;
  }

  /** The default tier first, the others by name. */
  async listTiers(): Promise<readonly ShownTier[]> {
    const tiers = await this.#deps.repository.listTiers();
    return [{ name: DEFAULT_TIER, limits: {} }, ...tiers].map((tier) => this.#shown(tier));
  }

  async putTier(name: string, limits: LimitValues): Promise<ShownTier> {
    if (!TIER_NAME.test(name)) throw invalid("The name of a tier has up to 63 characters of a-z, 0-9 and -, and does not begin with -");
    if (name === DEFAULT_TIER) throw defaultIsFixed();
    await this.#deps.repository.putTier({ name, limits }, this.#deps.clock.now());
    return this.#shown({ name, limits });
  }

  async deleteTier(name: string): Promise<void> {
    if (name === DEFAULT_TIER) throw defaultIsFixed();
    const outcome = await this.#deps.repository.deleteTier(name);
    if (outcome === "unknown") throw publicError("not_found", "Tier not found");
    if (outcome === "used") throw publicError("conflict", `The tier '${name}' has teams: give them another tier first`);
  }

  async ofTeam(teamId: string): Promise<ShownTeamLimits> {
    const { repository, identity, defaults } = this.#deps;
    if (!(await identity.findTeam(teamId))) throw publicError("not_found", "Team not found");
    const [{ tier, overrides }, use] = await Promise.all([repository.ofTeam(teamId), repository.useOfTeam(teamId)]);
    return { teamId, tier: tier?.name ?? DEFAULT_TIER, overrides, limits: { ...defaults, ...tier?.limits, ...overrides }, use };
  }

  /** Replaces the tier and the own limits of a team. */
  async setOfTeam(
    teamId: string,
    { tier, overrides }: { readonly tier: string; readonly overrides: LimitValues },
  ): Promise<ShownTeamLimits> {
    const { repository, identity, clock } = this.#deps;
    if (!(await identity.findTeam(teamId))) throw publicError("not_found", "Team not found");
    const set = { tier: tier === DEFAULT_TIER ? undefined : tier, overrides, now: clock.now() };
    if (!(await repository.putOfTeam(teamId, set))) throw invalid(`There is no tier '${tier}'`);
    return await this.ofTeam(teamId);
  }

  #shown({ name, limits }: Tier): ShownTier {
    return { name, set: limits, limits: { ...this.#deps.defaults, ...limits } };
  }
}

function defaultIsFixed() {
  return publicError("conflict", `The limits of the tier '${DEFAULT_TIER}' are the settings of the platform: change them there`);
}
