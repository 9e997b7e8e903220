import { type Kysely, sql } from "kysely";
import { type DialectName, lockTeam } from "./dialect/lock-team.ts";
import { recordEvent } from "./events/record-event.ts";
import { sandboxEvent } from "./events/sandbox-events.ts";
import { recordTemplateEvent } from "./events/template-events.ts";
import { changeImage } from "./sandbox-transition.ts";
import type { Database } from "./tables.ts";
import { findHolder, insertAlias, insertTemplate, isTemplateId } from "./template-claims.ts";
import { assignTag, type Build, buildFrom, buildRow, type Template, type TemplateAlias, templateFrom, touchTemplate } from "./templates.ts";

export interface NewSnapshot {
  readonly teamId: string;
  /** The name and its namespace; undefined for a snapshot without a name. */
  readonly alias: TemplateAlias | undefined;
  readonly tag: string;
  /** `templateId` is used when there is no template of this name yet. */
  readonly build: Build & { readonly image: NonNullable<Build["image"]> };
  readonly sizeBytes: number;
}

export interface Snapshot {
  readonly template: Template;
  readonly alias: TemplateAlias | undefined;
  readonly build: Build;
  readonly tag: string;
}

export interface SnapshotFilter {
  readonly teamId: string;
  readonly sourceSandboxId?: string;
  readonly templateId?: string;
  /** Default: the latest build. */
  readonly tag?: string;
}

export interface SnapshotPage {
  readonly limit: number;
  readonly after?: { readonly createdAt: number; readonly id: string };
}

/** Snapshots: templates whose builds are images of sandboxes. */
export class SnapshotRepository {
  readonly #db: Kysely<Database>;
  readonly #dialect: DialectName;
  constructor(db: Kysely<Database>, dialect: DialectName) {
    this.#db = db;
    this.#dialect = dialect;
  }

  /** Makes a complete image a build that sandboxes can start from, in one transaction. "taken": another template has the name, or its id. */
  async add(snapshot: NewSnapshot): Promise<Snapshot | "taken"> {
    const { build, alias, teamId } = snapshot;
    const now = build.createdAt;
    return await this.#db.transaction().execute(async (tx) => {
      await lockTeam(tx, this.#dialect, teamId);
      const named = alias && (await findHolder(tx, alias));
      if (named && (named.teamId !== teamId || named.kind !== "snapshot")) return "taken";
      if (alias && !named && (await isTemplateId(tx, alias.alias))) return "taken";
      const template = named ?? (await insertTemplate(tx, { id: build.templateId, teamId, kind: "snapshot", now }));
      if (alias && !named) await insertAlias(tx, alias, { templateId: template.id, now });
      const kept = { ...build, templateId: template.id };
      await tx.insertInto("builds").values(buildRow(kept)).execute();
      await touchTemplate(tx, template.id, now);
      await assignTag(tx, { templateId: template.id, buildId: build.id, tag: snapshot.tag, now });
      const { id, hasMemory } = build.image;
      await changeImage(tx, { kind: "keep", id, hasMemory, sizeBytes: snapshot.sizeBytes }, now);
      await announce(tx, { template, build: kept, isNew: named === undefined, tag: snapshot.tag });
      return { template, alias, build: kept, tag: snapshot.tag };
    });
  }

  /** The newest build of each snapshot that matches, the newest snapshot first. */
  async list(filter: SnapshotFilter, page: SnapshotPage): Promise<readonly Snapshot[]> {
    let query = this.#db
      .selectFrom("templates")
      .where("team_id", "=", filter.teamId)
      .where("kind", "=", "snapshot")
      .where("deleted_at", "is", null);
    if (filter.templateId !== undefined) query = query.where("id", "=", filter.templateId);
    const { sourceSandboxId, tag } = filter;
    if (sourceSandboxId !== undefined) {
      query = query.where("id", "in", (eb) =>
        eb.selectFrom("builds").where("source_sandbox_id", "=", sourceSandboxId).select("template_id"),
      );
    }
    if (tag !== undefined) {
      query = query.where("id", "in", (eb) => eb.selectFrom("tag_assignments").where("tag", "=", tag).select("template_id"));
    }
    const after = page.after;
    if (after) {
      query = query.where((eb) =>
        eb.or([eb("created_at", "<", after.createdAt), eb.and([eb("created_at", "=", after.createdAt), eb("id", ">", after.id)])]),
      );
    }
    const rows = await query.orderBy("created_at", "desc").orderBy("id", "asc").limit(page.limit).selectAll().execute();
    const found = await Promise.all(rows.map((row) => this.#describe(templateFrom(row), tag)));
    return found.filter((snapshot) => snapshot !== undefined);
  }

  /** The snapshot of a build. */
  async findOfBuild(buildId: string): Promise<Snapshot | undefined> {
    const row = await this.#db
      .selectFrom("tag_assignments")
      .innerJoin("templates", "templates.id", "tag_assignments.template_id")
      .innerJoin("builds", "builds.id", "tag_assignments.build_id")
      .where("builds.id", "=", buildId)
      .select(["templates.id as template_id", "tag_assignments.tag"])
      .orderBy("tag_assignments.assigned_at")
      .orderBy("tag_assignments.position")
      .executeTakeFirst();
    if (!row) return undefined;
    const template = await this.#db.selectFrom("templates").where("id", "=", row.template_id).selectAll().executeTakeFirstOrThrow();
    const build = await this.#db.selectFrom("builds").where("id", "=", buildId).selectAll().executeTakeFirstOrThrow();
    return { template: templateFrom(template), alias: await this.#aliasOf(row.template_id), build: buildFrom(build), tag: row.tag };
  }

  async #describe(template: Template, tag: string | undefined): Promise<Snapshot | undefined> {
    let query = this.#db
      .selectFrom("tag_assignments")
      .innerJoin("builds", "builds.id", "tag_assignments.build_id")
      .where("tag_assignments.template_id", "=", template.id)
      .where("builds.status", "=", "ready");
    if (tag !== undefined) query = query.where("tag_assignments.tag", "=", tag);
    const row = await query
      .orderBy("tag_assignments.assigned_at", "desc")
      .orderBy("tag_assignments.position", "desc")
      .limit(1)
      .selectAll("builds")
      .select(sql<string>`tag_assignments.tag`.as("tag"))
      .executeTakeFirst();
    return row && { template, alias: await this.#aliasOf(template.id), build: buildFrom(row), tag: row.tag };
  }

  async #aliasOf(templateId: string): Promise<TemplateAlias | undefined> {
    return await this.#db
      .selectFrom("template_aliases")
      .where("template_id", "=", templateId)
      .select(["namespace", "alias"])
      .orderBy("created_at")
      .limit(1)
      .executeTakeFirst();
  }
}

async function announce(
  tx: Kysely<Database>,
  about: { readonly template: Template; readonly build: NewSnapshot["build"]; readonly isNew: boolean; readonly tag: string },
): Promise<void> {
  const { template, build } = about;
  const at = build.createdAt;
  const facts = { templateId: template.id, buildId: build.id, tags: [about.tag] };
  await recordTemplateEvent(tx, template.id, {
    type: about.isNew ? "template.lifecycle.created" : "template.lifecycle.updated",
    at,
    facts,
  });
  const source = await tx.selectFrom("sandboxes").where("id", "=", build.image.sourceSandboxId).selectAll().executeTakeFirst();
  if (!source) return;
  const event = sandboxEvent(source, { type: "sandbox.lifecycle.checkpointed", at });
  await recordEvent(tx, { ...event, facts: { ...event.facts, snapshot: { templateId: template.id, buildId: build.id } } });
}
