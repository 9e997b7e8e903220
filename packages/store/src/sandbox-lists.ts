// The lists of a team's sandboxes. Each list is read along an index: `sandboxes_listed` for one state, `sandboxes_listed_all` for both.

import { type Kysely, type SelectQueryBuilder, sql } from "kysely";
import { type DialectName, jsonContains } from "./dialect/json-contains.ts";
import { type Sandbox, sandboxFrom } from "./sandbox.ts";
import type { Database } from "./tables.ts";

export interface SandboxFilter {
  readonly teamId: string;
  /** Default: running and paused. */
  readonly listed?: "running" | "paused";
  readonly metadata?: Readonly<Record<string, string>>;
  readonly templateId?: string;
  /** Inclusive. */
  readonly startedFrom?: number;
}

export interface SandboxPage {
  readonly order: "asc" | "desc";
  readonly limit: number;
  readonly after?: { readonly startedAt: number; readonly id: string };
}

type ListQuery<O> = SelectQueryBuilder<Database, "sandboxes", O>;

export async function listSandboxes(
  db: Kysely<Database>,
  dialect: DialectName,
  asked: { filter: SandboxFilter; page: SandboxPage },
): Promise<readonly Sandbox[]> {
  const { filter, page } = asked;
  const [byTime, byId] = page.order === "desc" ? (["desc", "asc"] as const) : (["asc", "desc"] as const);
  let query = matching(db, dialect, filter).selectAll().orderBy("started_at", byTime).orderBy("id", byId).limit(page.limit);
  const after = page.after;
  if (after) {
    const [timeIsNext, idIsNext] = page.order === "desc" ? (["<", ">"] as const) : ([">", "<"] as const);
    query = query.where((eb) =>
      eb.or([
        eb("started_at", timeIsNext, after.startedAt),
        eb.and([eb("started_at", "=", after.startedAt), eb("id", idIsNext, after.id)]),
      ]),
    );
  }
  return (await query.execute()).map(sandboxFrom);
}

export async function countSandboxes(db: Kysely<Database>, dialect: DialectName, filter: SandboxFilter): Promise<number> {
  const row = await matching(db, dialect, filter)
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();
  return row.count;
}

function matching(db: Kysely<Database>, dialect: DialectName, filter: SandboxFilter): ListQuery<object> {
  let query: ListQuery<object> = db.selectFrom("sandboxes").where("team_id", "=", filter.teamId);
  query = filter.listed === undefined ? query.where("listed", "is not", sql.lit(null)) : query.where("listed", "=", filter.listed);
  if (filter.templateId !== undefined) query = query.where("template_id", "=", filter.templateId);
  if (filter.startedFrom !== undefined) query = query.where("started_at", ">=", filter.startedFrom);
  if (filter.metadata && Object.keys(filter.metadata).length > 0) {
    query = query.where(jsonContains(dialect, "metadata", filter.metadata));
  }
  return query;
}
