import type { Kysely } from "kysely";
import { countBuilding } from "./builds.ts";
import { type DialectName, lockCluster } from "./dialect/lock-team.ts";
import { countSnapshots, type SandboxSize, STORED_STATES, sumSizes } from "./limit-checks.ts";
import { type LimitValues, limitsFrom } from "./limit-names.ts";
import { OCCUPYING_STATES } from "./sandbox.ts";
import type { Database } from "./tables.ts";
import { sumVolumes } from "./volumes.ts";

export interface Tier {
  readonly name: string;
  readonly limits: LimitValues;
}

/** What was set for a team. */
export interface TeamLimitEntry {
  /** Undefined: the limits of the platform's settings. */
  readonly tier: Tier | undefined;
  readonly overrides: LimitValues;
}

/** What a team has of what can be limited. */
export interface TeamUse {
  readonly running: SandboxSize & { readonly count: number };
  /** Of all sandboxes, also of paused ones. */
  readonly diskMb: number;
  readonly builds: number;
  readonly snapshots: number;
  readonly volumes: { readonly count: number; readonly sizeMb: number };
}

/** Tiers of limits, and which limits each team has. */
export class LimitRepository {
  readonly #db: Kysely<Database>;
  readonly #dialect: DialectName;
  constructor(db: Kysely<Database>, dialect: DialectName) {
    this.#db = db;
    this.#dialect = dialect;
  }

  async ofTeam(teamId: string): Promise<TeamLimitEntry> {
    const row = await this.#db
      .selectFrom("team_limits")
      .leftJoin("tiers", "tiers.name", "team_limits.tier")
      .where("team_limits.team_id", "=", teamId)
      .select(["team_limits.tier", "team_limits.overrides", "tiers.limits"])
      .executeTakeFirst();
    if (!row) return { tier: undefined, overrides: {} };
    const tier = row.tier === null ? undefined : { name: row.tier, limits: limitsFrom(row.limits) };
    return { tier, overrides: limitsFrom(row.overrides) };
  }

  async useOfTeam(teamId: string): Promise<TeamUse> {
    const [running, stored, builds, snapshots, volumes] = await Promise.all([
      sumSizes(this.#db, teamId, OCCUPYING_STATES),
      sumSizes(this.#db, teamId, STORED_STATES),
      countBuilding(this.#db, teamId),
      countSnapshots(this.#db, teamId),
      sumVolumes(this.#db, teamId),
    ]);
    return { running, diskMb: stored.diskSizeMb, builds, snapshots, volumes };
  }

  /** By name. */
  async listTiers(): Promise<readonly Tier[]> {
    const rows = await this.#db.selectFrom("tiers").selectAll().orderBy("name").execute();
    return rows.map(({ name, limits }) => ({ name, limits: limitsFrom(limits) }));
  }

  /** Adds a tier, or replaces its limits. */
  async putTier({ name, limits }: Tier, now: number): Promise<void> {
    const values = { limits: JSON.stringify(limits), updated_at: now };
    await this.#db
      .insertInto("tiers")
      .values({ name, ...values })
      .onConflict((conflict) => conflict.column("name").doUpdateSet(values))
      .execute();
  }

  /** "used": teams have the tier. */
  async deleteTier(name: string): Promise<"deleted" | "unknown" | "used"> {
    return await this.#db.transaction().execute(async (tx) => {
      await lockCluster(tx, this.#dialect);
      const user = await tx.selectFrom("team_limits").where("tier", "=", name).select("team_id").limit(1).executeTakeFirst();
      if (user) return "used";
      const { numDeletedRows } = await tx.deleteFrom("tiers").where("name", "=", name).executeTakeFirstOrThrow();
      return numDeletedRows > 0n ? "deleted" : "unknown";
    });
  }

  /** Replaces what was set for a team. Returns false when there is no such tier. */
  async putOfTeam(
    teamId: string,
    set: { readonly tier: string | undefined; readonly overrides: LimitValues; readonly now: number },
  ): Promise<boolean> {
    const { tier = null, overrides, now } = set;
    return await this.#db.transaction().execute(async (tx) => {
      await lockCluster(tx, this.#dialect);
      if (tier !== null && !(await tx.selectFrom("tiers").where("name", "=", tier).select("name").executeTakeFirst())) return false;
      const values = { tier, overrides: JSON.stringify(overrides), updated_at: now };
      await tx
        .insertInto("team_limits")
        .values({ team_id: teamId, ...values })
        .onConflict((conflict) => conflict.column("team_id").doUpdateSet(values))
        .execute();
      return true;
    });
  }
}
