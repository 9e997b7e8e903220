// The tags of templates. A tag is a list of assignments that only grows: the newest one whose build is ready is served. Removing a tag
// removes its whole list; the builds stay, and can still be named by their ids.

import { type Kysely, type SelectQueryBuilder, sql } from "kysely";
import { recordTemplateEvent } from "./events/template-events.ts";
import type { Database } from "./tables.ts";
import { assignTag, touchTemplate } from "./templates.ts";

export interface AssignedTag {
  readonly tag: string;
  readonly buildId: string;
  readonly assignedAt: number;
}

/** One assignment in the history of a tag, of a build that is ready. */
export interface TagAssignment extends AssignedTag {
  readonly templateId: string;
  /** Counts the assignments of the tag, from 1. */
  readonly position: number;
  readonly buildCreatedAt: number;
  readonly buildFinishedAt: number | null;
}

export class TagRepository {
  readonly #db: Kysely<Database>;
  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  /** Gives a build tags, all or none. A tag whose latest assignment is this build stays as it is. Returns false for a deleted template. */
  async assign(about: {
    readonly templateId: string;
    readonly buildId: string;
    readonly tags: readonly string[];
    readonly now: number;
  }): Promise<boolean> {
    const { templateId, buildId, now } = about;
    return await this.#db.transaction().execute(async (tx) => {
      if (!(await touchTemplate(tx, templateId, now))) return false;
      for (const tag of about.tags) await assignTag(tx, { templateId, buildId, tag, now });
      await recordTemplateEvent(tx, templateId, { type: "template.lifecycle.updated", at: now, facts: { buildId, tags: about.tags } });
      return true;
    });
  }

  /** Removes tags from a template. A tag that it does not have is ignored. */
  async remove(about: { readonly templateId: string; readonly tags: readonly string[]; readonly now: number }): Promise<void> {
    await this.#db.transaction().execute(async (tx) => {
      if (!(await touchTemplate(tx, about.templateId, about.now))) return;
      await tx.deleteFrom("tag_assignments").where("template_id", "=", about.templateId).where("tag", "in", about.tags).execute();
      const removed = { type: "template.lifecycle.updated", at: about.now, reason: "tags removed", facts: { tags: about.tags } } as const;
      await recordTemplateEvent(tx, about.templateId, removed);
    });
  }

  /** The latest assignment of each tag, also of builds that are not ready. In no order. */
  async list(templateId: string): Promise<readonly AssignedTag[]> {
    const rows = await this.#db
      .selectFrom("tag_assignments")
      .innerJoin(
        (eb) =>
          eb
            .selectFrom("tag_assignments as each")
            .where("each.template_id", "=", templateId)
            .groupBy("each.tag")
            .select((each) => ["each.tag", each.fn.max("each.position").as("position")])
            .as("last"),
        (join) => join.onRef("last.tag", "=", "tag_assignments.tag").onRef("last.position", "=", "tag_assignments.position"),
      )
      .where("tag_assignments.template_id", "=", templateId)
      .select(["tag_assignments.tag", "build_id", "assigned_at"])
      .execute();
    return rows.map((row) => ({ tag: row.tag, buildId: row.build_id, assignedAt: row.assigned_at }));
  }

  /** The tags that serve a build, each with the time of the latest assignment of a ready build. In no order. */
  async listServed(templateId: string): Promise<readonly { readonly tag: string; readonly assignedAt: number }[]> {
    const rows = await this.#ready(templateId)
      .groupBy("tag_assignments.tag")
      .select((eb) => ["tag_assignments.tag", eb.fn.max("tag_assignments.assigned_at").as("assigned_at")])
      .execute();
    return rows.map((row) => ({ tag: row.tag, assignedAt: row.assigned_at }));
  }

  /** The latest assignments of each of the tags, newest first within a tag. */
  async listAssignments(templateId: string, tags: readonly string[], limit: number): Promise<readonly TagAssignment[]> {
    if (tags.length === 0) return [];
    const ranked = selectAssignment(this.#ready(templateId))
      .where("tag_assignments.tag", "in", tags)
      .select(sql<number>`row_number() over (partition by tag_assignments.tag order by tag_assignments.position desc)`.as("rank"));
    const rows = await this.#db
      .selectFrom(ranked.as("ranked"))
      .where("rank", "<=", limit)
      .selectAll()
      .orderBy("tag")
      .orderBy("position", "desc")
      .execute();
    return rows.map(assignmentFrom);
  }

  /** One page of the history of a tag, newest first. */
  async pageAssignments(
    templateId: string,
    tag: string,
    page: { readonly limit: number; readonly below?: number },
  ): Promise<readonly TagAssignment[]> {
    let query = selectAssignment(this.#ready(templateId)).where("tag_assignments.tag", "=", tag);
    if (page.below !== undefined) query = query.where("tag_assignments.position", "<", page.below);
    return (await query.orderBy("tag_assignments.position", "desc").limit(page.limit).execute()).map(assignmentFrom);
  }

  #ready(templateId: string) {
    return this.#db
      .selectFrom("tag_assignments")
      .innerJoin("builds", "builds.id", "tag_assignments.build_id")
      .where("tag_assignments.template_id", "=", templateId)
      .where("builds.status", "=", "ready");
  }
}

interface AssignmentRow {
  readonly template_id: string;
  readonly tag: string;
  readonly position: number;
  readonly build_id: string;
  readonly assigned_at: number;
  readonly created_at: number;
  readonly finished_at: number | null;
}

function selectAssignment<O>(query: SelectQueryBuilder<Database, "tag_assignments" | "builds", O>) {
  return query.select([
    "tag_assignments.template_id",
    "tag_assignments.tag",
    "tag_assignments.position",
    "tag_assignments.build_id",
    "tag_assignments.assigned_at",
    "builds.created_at",
    "builds.finished_at",
  ]);
}

function assignmentFrom(row: AssignmentRow): TagAssignment {
  return {
    templateId: row.template_id,
    tag: row.tag,
    position: row.position,
    buildId: row.build_id,
    assignedAt: row.assigned_at,
    buildCreatedAt: row.created_at,
    buildFinishedAt: row.finished_at,
  };
}
