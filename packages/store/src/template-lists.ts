// Templates as lists show them: with their names, their builds, and how often they were used. A list takes a fixed number of queries,
// however many templates it has.

import type { Kysely, Selectable } from "kysely";
import type { BuildTable, Database, TemplateTable } from "./tables.ts";
import { type Build, type BuildStatus, buildFrom, DEFAULT_TAG, type Template, type TemplateAlias, templateFrom } from "./templates.ts";

export interface ListedTemplate {
  readonly template: Template;
  /** Ordered by the time of the first name. */
  readonly aliases: readonly TemplateAlias[];
  /** The build that the default tag serves; undefined when none is ready. */
  readonly build: Build | undefined;
  /** The build that says how large the template is: the served one, or the latest when none is. Undefined for a template without builds. */
  readonly sizes: Build | undefined;
  /** The status of the latest build with the default tag; undefined when there is none. */
  readonly status: BuildStatus | undefined;
  readonly buildCount: number;
}

/** A build in the list of a template's builds. */
export interface ListedBuild {
  readonly id: string;
  readonly status: BuildStatus;
  readonly cpuCount: number;
  readonly memoryMb: number;
  readonly diskSizeMb: number;
  readonly agentVersion: string;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly finishedAt: number | null;
}

/** A position in a list that is ordered newest first, and by id among those of the same time. */
export interface NewestFirstPage {
  readonly limit: number;
  readonly after?: { readonly createdAt: number; readonly id: string };
}

/** Bounds the parameters of one query. */
const DESCRIBED_AT_ONCE = 500;

type TemplateRow = Selectable<TemplateTable>;

type ListedBuildRow = Pick<
  Selectable<BuildTable>,
  "id" | "status" | "cpu_count" | "memory_mb" | "disk_size_mb" | "agent_version" | "created_at" | "updated_at" | "finished_at"
>;

/** Reads templates and builds for lists. */
export class TemplateListRepository {
  readonly #db: Kysely<Database>;
  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  /** A team's own templates without its snapshots, oldest first. */
  async listOfTeam(teamId: string, limit: number): Promise<readonly ListedTemplate[]> {
    const rows = await ownTemplates(this.#db, teamId).orderBy("created_at").orderBy("id").limit(limit).execute();
    return await describe(this.#db, rows);
  }

  /** One page of a team's own templates without its snapshots, newest first. */
  async pageOfTeam(teamId: string, { limit, after }: NewestFirstPage): Promise<readonly ListedTemplate[]> {
    let query = ownTemplates(this.#db, teamId);
    if (after) {
      query = query.where((eb) =>
        eb.or([eb("created_at", "<", after.createdAt), eb.and([eb("created_at", "=", after.createdAt), eb("id", ">", after.id)])]),
      );
    }
    return await describe(this.#db, await query.orderBy("created_at", "desc").orderBy("id", "asc").limit(limit).execute());
  }

  /** The templates that come with the platform, by id. */
  async listDefault(): Promise<readonly ListedTemplate[]> {
    const rows = await this.#db
      .selectFrom("templates")
      .where("is_default", "=", 1)
      .where("deleted_at", "is", null)
      .selectAll()
      .orderBy("id")
      .execute();
    return await describe(this.#db, rows);
  }

  /** Undefined for a template that is unknown or deleted. */
  async find(id: string): Promise<ListedTemplate | undefined> {
    const rows = await this.#db.selectFrom("templates").where("id", "=", id).where("deleted_at", "is", null).selectAll().execute();
    const [described] = await describe(this.#db, rows);
    return described;
  }

  /** One page of a template's builds, newest first. */
  async pageBuilds(templateId: string, { limit, after }: NewestFirstPage): Promise<readonly ListedBuild[]> {
    let query = this.#db.selectFrom("builds").where("template_id", "=", templateId);
    if (after) {
      query = query.where((eb) =>
        eb.or([eb("created_at", "<", after.createdAt), eb.and([eb("created_at", "=", after.createdAt), eb("id", ">", after.id)])]),
      );
    }
    const rows = await query
      .select(["id", "status", "cpu_count", "memory_mb", "disk_size_mb", "agent_version", "created_at", "updated_at", "finished_at"])
      .orderBy("created_at", "desc")
      .orderBy("id", "asc")
      .limit(limit)
      .execute();
    return rows.map(listedBuildFrom);
  }
}

function listedBuildFrom(row: ListedBuildRow): ListedBuild {
  return {
    id: row.id,
    status: row.status as BuildStatus,
    cpuCount: row.cpu_count,
    memoryMb: row.memory_mb,
    diskSizeMb: row.disk_size_mb,
    agentVersion: row.agent_version,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    finishedAt: row.finished_at,
  };
}

function ownTemplates(db: Kysely<Database>, teamId: string) {
  return db
    .selectFrom("templates")
    .where("team_id", "=", teamId)
    .where("kind", "=", "template")
    .where("deleted_at", "is", null)
    .selectAll();
}

async function describe(db: Kysely<Database>, rows: readonly TemplateRow[]): Promise<readonly ListedTemplate[]> {
  const described: ListedTemplate[] = [];
  for (let i = 0; i < rows.length; i += DESCRIBED_AT_ONCE) {
    described.push(...(await describeSome(db, rows.slice(i, i + DESCRIBED_AT_ONCE))));
  }
  return described;
}

async function describeSome(db: Kysely<Database>, rows: readonly TemplateRow[]): Promise<readonly ListedTemplate[]> {
  const ids = rows.map(({ id }) => id);
  const [aliases, counts, served, latest] = await Promise.all([
    findAliases(db, ids),
    countBuilds(db, ids),
    findDefaultBuilds(db, ids, { onlyReady: true }),
    findDefaultBuilds(db, ids, { onlyReady: false }),
  ]);
  const others = await findNewestBuilds(
    db,
    ids.filter((id) => !latest.has(id)),
  );
  return rows.map((row) => ({
    template: templateFrom(row),
    aliases: aliases.get(row.id) ?? [],
    build: served.get(row.id),
    sizes: served.get(row.id) ?? latest.get(row.id) ?? others.get(row.id),
    status: latest.get(row.id)?.status,
    buildCount: counts.get(row.id) ?? 0,
  }));
}

async function findAliases(db: Kysely<Database>, ids: readonly string[]): Promise<ReadonlyMap<string, readonly TemplateAlias[]>> {
  if (ids.length === 0) return new Map();
  const rows = await db
    .selectFrom("template_aliases")
    .where("template_id", "in", ids)
    .select(["template_id", "namespace", "alias"])
    .orderBy("created_at")
    .orderBy("alias")
    .orderBy("namespace", "desc")
    .execute();
  const found = new Map<string, TemplateAlias[]>();
  for (const { template_id, namespace, alias } of rows) {
    found.set(template_id, [...(found.get(template_id) ?? []), { namespace, alias }]);
  }
  return found;
}

async function countBuilds(db: Kysely<Database>, ids: readonly string[]): Promise<ReadonlyMap<string, number>> {
  if (ids.length === 0) return new Map();
  const rows = await db
    .selectFrom("builds")
    .where("template_id", "in", ids)
    .groupBy("template_id")
    .select(["template_id", (eb) => eb.fn.countAll<number>().as("count")])
    .execute();
  return new Map(rows.map(({ template_id, count }) => [template_id, count]));
}

/** The build of each template that got the default tag last, among all or among the ready ones. */
async function findDefaultBuilds(
  db: Kysely<Database>,
  ids: readonly string[],
  { onlyReady }: { readonly onlyReady: boolean },
): Promise<ReadonlyMap<string, Build>> {
  if (ids.length === 0) return new Map();
  const rows = await db
    .selectFrom("tag_assignments")
    .innerJoin("builds", "builds.id", "tag_assignments.build_id")
    .innerJoin(
      (eb) =>
        eb
          .selectFrom("tag_assignments as each")
          .innerJoin("builds as built", "built.id", "each.build_id")
          .where("each.template_id", "in", ids)
          .where("each.tag", "=", DEFAULT_TAG)
          .$if(onlyReady, (query) => query.where("built.status", "=", "ready"))
          .groupBy("each.template_id")
          .select((each) => ["each.template_id", each.fn.max("each.position").as("position")])
          .as("last"),
      (join) => join.onRef("last.template_id", "=", "tag_assignments.template_id").onRef("last.position", "=", "tag_assignments.position"),
    )
    .where("tag_assignments.tag", "=", DEFAULT_TAG)
    .selectAll("builds")
    .execute();
  return new Map(rows.map((row) => [row.template_id, buildFrom(row)]));
}

/** The newest build of each template, whatever its tags. */
async function findNewestBuilds(db: Kysely<Database>, ids: readonly string[]): Promise<ReadonlyMap<string, Build>> {
  if (ids.length === 0) return new Map();
  const rows = await db
    .selectFrom("builds")
    .innerJoin(
      (eb) =>
        eb
          .selectFrom("builds as each")
          .where("each.template_id", "in", ids)
          .groupBy("each.template_id")
          .select((each) => ["each.template_id", each.fn.max("each.created_at").as("created_at")])
          .as("last"),
      (join) => join.onRef("last.template_id", "=", "builds.template_id").onRef("last.created_at", "=", "builds.created_at"),
    )
    .selectAll("builds")
    .execute();
  return new Map(rows.map((row) => [row.template_id, buildFrom(row)]));
}
