// The rows of volumes. A row is written before its node is asked for the volume, and stays until the node has deleted it.

import { PlatformError } from "@skerry/base";
import { type Kysely, sql } from "kysely";
import { type DialectName, lockTeam } from "./dialect/lock-team.ts";
import type { EventType } from "./events/event-type.ts";
import { recordEvent } from "./events/record-event.ts";
import { TEAM_COLUMNS, type Team, teamFrom } from "./identity.ts";
import type { Database } from "./tables.ts";
import { type NewVolume, type Volume, type VolumeState, volumeFrom } from "./volume.ts";
import { countMounts } from "./volume-mounts.ts";

export interface OwnedVolume extends Volume {
  readonly team: Team;
}

export type VolumeRemoval =
  | { readonly kind: "missing" }
  | { readonly kind: "mounted"; readonly volume: Volume; readonly sandboxes: number }
  | { readonly kind: "removed"; readonly volume: Volume };

export class VolumeRepository {
  readonly #db: Kysely<Database>;
  readonly #dialect: DialectName;
  constructor(db: Kysely<Database>, dialect: DialectName) {
    this.#db = db;
    this.#dialect = dialect;
  }

  /**
   * Adds a volume in the state `creating`. `limit`: the team has `max` volumes. Throws PlatformError("limit_reached") when all volumes of the
   * team together would be larger than `maxMb`.
   */
  async add(
    volume: NewVolume,
    { max, maxMb }: { readonly max: number; readonly maxMb: number | null },
  ): Promise<{ readonly kind: "added" | "taken" | "limit" }> {
    const { teamId } = volume;
    return await this.#db.transaction().execute(async (tx) => {
      await lockTeam(tx, this.#dialect, teamId);
      const taken = await tx
        .selectFrom("volumes")
        .where("team_id", "=", teamId)
        .where("name", "=", volume.name)
        .where("state", "!=", sql.lit("deleting"))
        .select("id")
        .executeTakeFirst();
      if (taken) return { kind: "taken" };
      const used = await sumVolumes(tx, teamId);
      if (used.count >= max) return { kind: "limit" };
      if (maxMb !== null && used.sizeMb + volume.sizeMb > maxMb) {
        throw new PlatformError("limit_reached", `the team has reached its limit volumeMb (${maxMb})`, { detailCode: "volumeMb" });
      }
      await tx
        .insertInto("volumes")
        .values({
          id: volume.id,
          team_id: teamId,
          name: volume.name,
          node_id: volume.nodeId,
          size_mb: volume.sizeMb,
          state: "creating",
          state_changed_at: volume.createdAt,
          owner: volume.owner,
          created_at: volume.createdAt,
        })
        .execute();
      return { kind: "added" };
    });
  }

  /** The node has the volume. Returns false when it is not in `creating` any more. */
  async markReady(id: string, now: number): Promise<boolean> {
    return await this.#db.transaction().execute(async (tx) => {
      const row = await tx
        .updateTable("volumes")
        .set({ state: "ready", state_changed_at: now })
        .where("id", "=", id)
        .where("state", "=", "creating")
        .returningAll()
        .executeTakeFirst();
      if (row) await recordVolumeEvent(tx, volumeFrom(row), { type: "volume.lifecycle.created", at: now });
      return row !== undefined;
    });
  }

  /** Gives up a volume that is in `creating`. Its node may have it. */
  async abandon(id: string, now: number): Promise<boolean> {
    const { numUpdatedRows } = await this.#db
      .updateTable("volumes")
      .set({ state: "deleting", state_changed_at: now })
      .where("id", "=", id)
      .where("state", "=", "creating")
      .executeTakeFirstOrThrow();
    return numUpdatedRows > 0n;
  }

  /** A volume that callers see. */
  async find(teamId: string, id: string): Promise<Volume | undefined> {
    const row = await this.#db
      .selectFrom("volumes")
      .where("id", "=", id)
      .where("team_id", "=", teamId)
      .where("state", "=", sql.lit("ready"))
      .selectAll()
      .executeTakeFirst();
    return row && volumeFrom(row);
  }

  /** For a holder of its token: undefined also when its team was deleted. */
  async findOwned(id: string): Promise<OwnedVolume | undefined> {
    const row = await this.#db
      .selectFrom("volumes")
      .innerJoin("teams", "teams.id", "volumes.team_id")
      .where("volumes.id", "=", id)
      .where("volumes.state", "=", sql.lit("ready"))
      .where("teams.deleted_at", "is", null)
      .selectAll("volumes")
      .executeTakeFirst();
    if (!row) return undefined;
    const team = await this.#db.selectFrom("teams").where("id", "=", row.team_id).select(TEAM_COLUMNS).executeTakeFirstOrThrow();
    return { ...volumeFrom(row), team: teamFrom(team) };
  }

  /** Those of the names that the team has volumes with. */
  async findNamed(teamId: string, names: readonly string[]): Promise<readonly Volume[]> {
    if (names.length === 0) return [];
    const ready = this.#db.selectFrom("volumes").where("team_id", "=", teamId).where("state", "=", sql.lit("ready"));
    return (await ready.where("name", "in", names).selectAll().execute()).map(volumeFrom);
  }

  /** Those of the ids that the team has volumes with. */
  async filterReady(teamId: string, ids: readonly string[]): Promise<ReadonlySet<string>> {
    if (ids.length === 0) return new Set();
    const ready = this.#db.selectFrom("volumes").where("team_id", "=", teamId).where("state", "=", sql.lit("ready"));
    return new Set((await ready.where("id", "in", ids).select("id").execute()).map(({ id }) => id));
  }

  /** The oldest first. */
  async list(teamId: string): Promise<readonly Volume[]> {
    const ready = this.#db.selectFrom("volumes").where("team_id", "=", teamId).where("state", "=", sql.lit("ready"));
    return (await ready.orderBy("created_at").orderBy("id").selectAll().execute()).map(volumeFrom);
  }

  /** Moves a volume to `deleting`. A volume that sandboxes mount only with `force`. */
  async remove(teamId: string, id: string, { force, now }: { readonly force: boolean; readonly now: number }): Promise<VolumeRemoval> {
    return await this.#db.transaction().execute(async (tx) => {
      await lockTeam(tx, this.#dialect, teamId);
      const ready = tx.selectFrom("volumes").where("id", "=", id).where("team_id", "=", teamId).where("state", "=", sql.lit("ready"));
      const row = await ready.selectAll().executeTakeFirst();
      if (!row) return { kind: "missing" };
      const volume = volumeFrom(row);
      const sandboxes = await countMounts(tx, id);
      if (sandboxes > 0 && !force) return { kind: "mounted", volume, sandboxes };
      await tx.updateTable("volumes").set({ state: "deleting", state_changed_at: now }).where("id", "=", id).execute();
      await recordVolumeEvent(tx, volume, { type: "volume.lifecycle.deleted", at: now });
      return { kind: "removed", volume };
    });
  }

  /** The longest in this state first. */
  async listUnsettled(state: Exclude<VolumeState, "ready">, limit: number): Promise<readonly Volume[]> {
    const query = this.#db.selectFrom("volumes").where("state", "=", sql.lit(state)).selectAll();
    return (await query.orderBy("state_changed_at").orderBy("id").limit(limit).execute()).map(volumeFrom);
  }

  /** Removes the row of a volume that its node has deleted. */
  async forget(id: string): Promise<void> {
    await this.#db.deleteFrom("volumes").where("id", "=", id).where("state", "=", "deleting").execute();
  }
}

/** The volumes of a team that nobody deleted. */
export async function sumVolumes(db: Kysely<Database>, teamId: string): Promise<{ readonly count: number; readonly sizeMb: number }> {
  const { count, size } = await db
    .selectFrom("volumes")
    .where("team_id", "=", teamId)
    .where("state", "!=", sql.lit("deleting"))
    .select([sql<number>`count(*)`.as("count"), sql<number>`coalesce(sum(size_mb), 0)`.as("size")])
    .executeTakeFirstOrThrow();
  return { count: Number(count), sizeMb: Number(size) };
}

async function recordVolumeEvent(
  tx: Kysely<Database>,
  { id, teamId, name, sizeMb }: Volume,
  event: { readonly type: Extract<EventType, `volume.${string}`>; readonly at: number },
): Promise<void> {
  await recordEvent(tx, { ...event, teamId, subjectId: id, facts: { name, sizeMb } });
}
