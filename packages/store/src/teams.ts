import type { Kysely } from "kysely";
import { type DialectName, lockTeam } from "./dialect/lock-team.ts";
import type { Team } from "./identity.ts";
import { type CreatedAfter, isAfter } from "./newest-first.ts";
import type { Database } from "./tables.ts";
import { sumVolumes } from "./volumes.ts";

export interface ListedTeam extends Team {
  readonly createdAt: number;
}

/** What still belongs to a team and keeps it from being deleted. */
export interface TeamContents {
  readonly sandboxes: number;
  readonly templates: number;
  readonly volumes: number;
}

/** Teams, for the operator and their members. */
export class TeamRepository {
  readonly #db: Kysely<Database>;
  readonly #dialect: DialectName;
  constructor(db: Kysely<Database>, dialect: DialectName) {
    this.#db = db;
    this.#dialect = dialect;
  }

  /** Returns false when the slug is taken. */
  async add(team: ListedTeam): Promise<boolean> {
    const { numInsertedOrUpdatedRows } = await this.#db
      .insertInto("teams")
      .values({ id: team.id, slug: team.slug, name: team.name, created_at: team.createdAt, deleted_at: null })
      .onConflict((conflict) => conflict.column("slug").doNothing())
      .executeTakeFirstOrThrow();
    return numInsertedOrUpdatedRows !== 0n;
  }

  async find(id: string): Promise<ListedTeam | undefined> {
    const row = await this.#db
      .selectFrom("teams")
      .where("id", "=", id)
      .where("deleted_at", "is", null)
      .select(["id", "slug", "name", "created_at"])
      .executeTakeFirst();
    return row && listedFrom(row);
  }

  /** Newest first. */
  async list({ limit, after }: { readonly limit: number; readonly after?: CreatedAfter }): Promise<readonly ListedTeam[]> {
    let query = this.#db.selectFrom("teams").where("deleted_at", "is", null).select(["id", "slug", "name", "created_at"]);
    if (after) query = query.where((eb) => isAfter(eb, after));
    return (await query.orderBy("created_at", "desc").orderBy("id").limit(limit).execute()).map(listedFrom);
  }

  /** Returns whether there is such a team. */
  async rename(id: string, name: string): Promise<boolean> {
    const { numUpdatedRows } = await this.#db
      .updateTable("teams")
      .set({ name })
      .where("id", "=", id)
      .where("deleted_at", "is", null)
      .executeTakeFirstOrThrow();
    return numUpdatedRows > 0n;
  }

  /**
   * Deletes a team without sandboxes, templates and volumes, with its keys, memberships, invitations and secrets. The row stays, because rows of ended
   * sandboxes refer to it; its slug becomes free.
   */
  async remove(id: string, now: number): Promise<"removed" | "missing" | TeamContents> {
    return await this.#db.transaction().execute(async (tx) => {
      await lockTeam(tx, this.#dialect, id);
      const team = await tx.selectFrom("teams").where("id", "=", id).where("deleted_at", "is", null).select("id").executeTakeFirst();
      if (!team) return "missing";
      const contents = await contentsOf(tx, id);
      if (contents.sandboxes + contents.templates + contents.volumes > 0) return contents;
      for (const table of ["team_members", "api_keys", "invitations", "secrets"] as const) {
        await tx.deleteFrom(table).where("team_id", "=", id).execute();
      }
      await tx
        .updateTable("teams")
        .set({ deleted_at: now, slug: `deleted-${id}` })
        .where("id", "=", id)
        .execute();
      return "removed";
    });
  }
}

async function contentsOf(tx: Kysely<Database>, teamId: string): Promise<TeamContents> {
  const sandboxes = await tx
    .selectFrom("sandboxes")
    .where("team_id", "=", teamId)
    .where("state", "!=", "ended")
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();
  const templates = await tx
    .selectFrom("templates")
    .where("team_id", "=", teamId)
    .where("deleted_at", "is", null)
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();
  return { sandboxes: Number(sandboxes.count), templates: Number(templates.count), volumes: (await sumVolumes(tx, teamId)).count };
}

function listedFrom(row: { id: string; slug: string; name: string; created_at: number }): ListedTeam {
  return { id: row.id, slug: row.slug, name: row.name, createdAt: row.created_at };
}
