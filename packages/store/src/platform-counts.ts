import { type Kysely, sql } from "kysely";
import type { Database } from "./tables.ts";

/** Counts of the whole platform, for its operator. */
export interface PlatformCounts {
  readonly sandboxes: Readonly<Record<string, number>>;
  readonly builds: Readonly<Record<string, number>>;
  readonly teams: number;
  readonly templates: number;
  readonly webhooks: { readonly enabled: number; readonly failing: number; readonly disabled: number };
}

export class PlatformCountRepository {
  readonly #db: Kysely<Database>;
  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  /** Throws when the database does not answer. */
  async ping(): Promise<void> {
    await sql`select 1`.execute(this.#db);
  }

  async read(): Promise<PlatformCounts> {
    const count = sql<number>`count(*)`.as("count");
    const [sandboxes, builds, teams, templates, webhooks] = await Promise.all([
      this.#db.selectFrom("sandboxes").groupBy("state").select(["state as name", count]).execute(),
      this.#db.selectFrom("builds").groupBy("status").select(["status as name", count]).execute(),
      this.#db.selectFrom("teams").where("deleted_at", "is", null).select(count).executeTakeFirstOrThrow(),
      this.#db.selectFrom("templates").where("deleted_at", "is", null).select(count).executeTakeFirstOrThrow(),
      this.#db.selectFrom("webhooks").select(["enabled", "failures"]).execute(),
    ]);
    const byName = (rows: readonly { readonly name: string; readonly count: number }[]) =>
      Object.fromEntries(rows.map((row) => [row.name, Number(row.count)]));
    return {
      sandboxes: byName(sandboxes),
      builds: byName(builds),
      teams: Number(teams.count),
      templates: Number(templates.count),
      webhooks: {
        enabled: webhooks.filter(({ enabled }) => enabled === 1).length,
        failing: webhooks.filter(({ enabled, failures }) => enabled === 1 && failures > 0).length,
        disabled: webhooks.filter(({ enabled }) => enabled === 0).length,
      },
    };
  }
}
