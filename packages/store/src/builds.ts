// The states of builds: waiting (registered), building (queued, or on a node), and ready or error. Each change is a compare-and-set in one
// transaction with the log lines that report it. Of several API processes, the one in `owner` follows a build; only it writes its progress.

import { type Kysely, sql } from "kysely";
import {
  type BuildEntry,
  type BuildJob,
  type BuildOutcome,
  type BuildReason,
  type BuildRequest,
  entryFrom,
  jobFrom,
  type NewBuild,
} from "./build.ts";
import { appendLines, type BuildLogLine } from "./build-logs.ts";
import { type DialectName, lockCluster, lockTeam } from "./dialect/lock-team.ts";
import { recordBuildEvent, recordTemplateEvent } from "./events/template-events.ts";
import type { Database } from "./tables.ts";
import { type ClaimedTemplate, claimTemplate, type TemplateClaim } from "./template-claims.ts";
import { assignTag, buildRow, type Template } from "./templates.ts";

/** Longest reason of a failure in an event. The log has all of it. */
const MAX_REASON = 500;

export interface BuildRegistration {
  readonly claim: TemplateClaim;
  readonly build: NewBuild;
  readonly tags: readonly string[];
  /** How many builds of the team may be under way. */
  readonly maxBuilds: number;
  /** What waiting builds fail with that this one replaces. */
  readonly superseded: BuildReason;
}

export type RegisteredBuild =
  | { readonly kind: "registered"; readonly template: Template /** With this one. */; readonly buildCount: number }
  | { readonly kind: "limit" }
  | Exclude<ClaimedTemplate, { readonly kind: "claimed" }>;

export interface BuildStartRequest {
  readonly request: BuildRequest;
  readonly isLegacy: boolean;
  readonly owner: string;
  readonly maxBuilds: number;
  /** What running builds end with that this one replaces. */
  readonly superseded: BuildReason;
  readonly now: number;
}

export type StartedBuild =
  | { readonly kind: "started"; readonly superseded: readonly string[] }
  | { readonly kind: "not-waiting" }
  | { readonly kind: "limit" };

/** Progress of a build, written by its owner. */
interface Progress {
  readonly owner: string;
  readonly lines: readonly BuildLogLine[];
  readonly now: number;
}

export class BuildRepository {
  readonly #db: Kysely<Database>;
  readonly #dialect: DialectName;
  constructor(db: Kysely<Database>, dialect: DialectName) {
    this.#db = db;
    this.#dialect = dialect;
  }

  /** Adds a build in the state `waiting`, with its tags and its template. Waiting builds of the same template and tag fail. */
  async register({ claim, build, tags, maxBuilds, superseded }: BuildRegistration): Promise<RegisteredBuild> {
    const { now, teamId } = claim;
    return await this.#db.transaction().execute(async (tx) => {
      await lockTeam(tx, this.#dialect, teamId);
      if ((await countBuilding(tx, teamId)) >= maxBuilds) return { kind: "limit" };
      const claimed = await claimTemplate(tx, this.#dialect, claim);
      if (claimed.kind !== "claimed") return claimed;
      const { template } = claimed;
      for (const id of await overlapping(tx, { templateId: template.id, status: "waiting", tags })) {
        await fail(tx, id, { from: "waiting", reason: superseded, now });
      }
      const none = { layers: [], defaultUser: "user", defaultWorkdir: "", agentVersion: "", image: null };
      await tx
        .insertInto("builds")
        .values(buildRow({ ...build, ...none, templateId: template.id, status: "waiting", createdAt: now }))
        .execute();
      for (const tag of tags) await assignTag(tx, { templateId: template.id, buildId: build.id, tag, now });
      await tx.updateTable("templates").set({ updated_at: now }).where("id", "=", template.id).execute();
      if (template.id === claim.newId) {
        const facts = { name: claim.alias?.alias, buildId: build.id, tags };
        await recordTemplateEvent(tx, template.id, { type: "template.lifecycle.created", at: now, facts });
      }
      await recordBuildEvent(tx, build.id, { type: "build.lifecycle.created", at: now });
      const { buildCount } = await tx
        .selectFrom("builds")
        .where("template_id", "=", template.id)
        .select((eb) => eb.fn.countAll<number>().as("buildCount"))
        .executeTakeFirstOrThrow();
      return { kind: "registered", template: { ...template, updatedAt: now }, buildCount };
    });
  }

  /** Moves a waiting build to `building`: it is queued. Running builds of the same template and tag end. */
  async start(
    job: Pick<BuildJob, "id" | "teamId" | "templateId">,
    { request, isLegacy, owner, maxBuilds, superseded, now }: BuildStartRequest,
  ): Promise<StartedBuild> {
    return await this.#db.transaction().execute(async (tx) => {
      await lockTeam(tx, this.#dialect, job.teamId);
      const row = await tx.selectFrom("builds").where("id", "=", job.id).select("status").executeTakeFirst();
      if (row?.status !== "waiting") return { kind: "not-waiting" };
      const tags = await tx.selectFrom("tag_assignments").where("build_id", "=", job.id).select("tag").execute();
      const names = tags.map(({ tag }) => tag);
      const replaced = await overlapping(tx, { templateId: job.templateId, status: "building", tags: names });
      if ((await countBuilding(tx, job.teamId)) - replaced.length >= maxBuilds) return { kind: "limit" };
      for (const id of replaced) await fail(tx, id, { from: "building", reason: superseded, now });
      await tx
        .updateTable("builds")
        .set({
          status: "building",
          request: JSON.stringify(request),
          is_legacy: Number(isLegacy),
          owner,
          started_at: now,
          updated_at: now,
        })
        .where("id", "=", job.id)
        .execute();
      await recordBuildEvent(tx, job.id, { type: "build.lifecycle.started", at: now });
      return { kind: "started", superseded: replaced };
    });
  }

  /** A build without its request, which may be large. */
  async findEntry(buildId: string): Promise<BuildEntry | undefined> {
    const row = await entries(this.#db).where("builds.id", "=", buildId).executeTakeFirst();
    return row && entryFrom(row);
  }

  async find(buildId: string): Promise<BuildJob | undefined> {
    const row = await entries(this.#db).where("builds.id", "=", buildId).select("builds.request").executeTakeFirst();
    return row && jobFrom(row);
  }

  /** All builds that are queued or run, in the order in which they were started. */
  async listBuilding(): Promise<readonly BuildEntry[]> {
    const rows = await entries(this.#db)
      .where("builds.status", "=", sql.lit("building"))
      .orderBy("started_at")
      .orderBy("builds.id")
      .execute();
    return rows.map(entryFrom);
  }

  /** The number of started builds that wait for a node, and of those that a node carries out. */
  async countBuilding(): Promise<{ readonly queued: number; readonly running: number }> {
    const row = await this.#db
      .selectFrom("builds")
      .where("status", "=", sql.lit("building"))
      .select([sql<number>`count(*)`.as("all"), sql<number>`count(began_at)`.as("begun")])
      .executeTakeFirstOrThrow();
    return { queued: Number(row.all) - Number(row.begun), running: Number(row.begun) };
  }

  /** Builds that have ended, and of which a node may still have something. */
  async listHeld(limit: number): Promise<readonly BuildEntry[]> {
    const rows = await entries(this.#db)
      .where("builder_node_id", "is not", null)
      .where("builds.status", "in", ["ready", "error"])
      .limit(limit)
      .execute();
    return rows.map(entryFrom);
  }

  /** Waiting builds that were registered before a time, or whose template was deleted. */
  async listGivenUp(before: number): Promise<readonly string[]> {
    const rows = await this.#db
      .selectFrom("builds")
      .innerJoin("templates", "templates.id", "builds.template_id")
      .where("builds.status", "=", sql.lit("waiting"))
      .where((eb) => eb.or([eb("builds.created_at", "<", before), eb("templates.deleted_at", "is not", null)]))
      .select("builds.id")
      .execute();
    return rows.map(({ id }) => id);
  }

  async listOfTeam(teamId: string, status: "waiting" | "building"): Promise<readonly string[]> {
    const rows = await entries(this.#db).where("team_id", "=", teamId).where("builds.status", "=", status).execute();
    return rows.map(({ id }) => id);
  }

  /** Gives a queued build to a node that carries out fewer than `atOnce`. Returns false when it has no room, or the build has changed. */
  async assign(id: string, to: { owner: string; nodeId: string; atOnce: number; now: number }): Promise<boolean> {
    return await this.#db.transaction().execute(async (tx) => {
      await lockCluster(tx, this.#dialect);
      const { count } = await tx
        .selectFrom("builds")
        .where("builder_node_id", "=", to.nodeId)
        .where("status", "=", sql.lit("building"))
        .select((eb) => eb.fn.countAll<number>().as("count"))
        .executeTakeFirstOrThrow();
      if (count >= to.atOnce) return false;
      const updated = await tx
        .updateTable("builds")
        .set((eb) => ({
          builder_node_id: to.nodeId,
          began_at: eb.fn.coalesce("began_at", eb.val(to.now)),
          attempts: eb("attempts", "+", 1),
          events_read: 0,
          updated_at: to.now,
        }))
        .where("id", "=", id)
        .where("status", "=", "building")
        .where("owner", "=", to.owner)
        .where("builder_node_id", "is", null)
        .executeTakeFirst();
      return updated.numUpdatedRows === 1n;
    });
  }

  /** Puts a build back into the queue. `began`: the node had begun it, so the attempt counts. */
  async requeue(id: string, { owner, lines, now, began }: Progress & { readonly began: boolean }): Promise<boolean> {
    const undone = sql`attempts = attempts - 1, began_at = case when attempts = 1 then null else began_at end`;
    const set = sql`builder_node_id = null, updated_at = ${now}${began ? sql`` : sql`, ${undone}`}`;
    return await this.#write(id, { owner, lines, set });
  }

  /** Stores what the node said. */
  async append(id: string, { owner, lines, now, eventsRead }: Progress & { readonly eventsRead: number }): Promise<boolean> {
    return await this.#write(id, { owner, lines, set: sql`events_read = ${eventsRead}, updated_at = ${now}` });
  }

  /** Ends a build with success. Sandboxes can be started from it when this returns true. */
  async succeed(id: string, { owner, lines, now, outcome }: Progress & { readonly outcome: BuildOutcome }): Promise<boolean> {
    return await this.#db.transaction().execute(async (tx) => {
      const updated = await tx
        .updateTable("builds")
        .set({
          status: "ready",
          request: null,
          layers: JSON.stringify(outcome.layers),
          layers_node_id: outcome.layersNodeId,
          context: JSON.stringify(outcome.context),
          start: outcome.start === undefined ? null : JSON.stringify(outcome.start),
          default_user: outcome.defaultUser,
          default_workdir: outcome.defaultWorkdir,
          agent_version: outcome.agentVersion,
          updated_at: now,
          finished_at: now,
        })
        .where("id", "=", id)
        .where("owner", "=", owner)
        .where("status", "=", "building")
        .returning("template_id")
        .executeTakeFirst();
      if (!updated) return false;
      await appendLines(tx, id, lines);
      await tx.updateTable("templates").set({ updated_at: now }).where("id", "=", updated.template_id).execute();
      await recordBuildEvent(tx, id, { type: "build.lifecycle.ready", at: now, actor: "platform" });
      return true;
    });
  }

  /** Ends a build with a failure. With `owner`, only while that process follows it. Returns false when it had ended already. */
  async fail(
    id: string,
    failure: {
      readonly from: "waiting" | "building";
      readonly owner?: string;
      readonly reason: BuildReason;
      readonly lines?: readonly BuildLogLine[];
      readonly now: number;
    },
  ): Promise<boolean> {
    return await this.#db.transaction().execute(async (tx) => await fail(tx, id, failure));
  }

  /** Makes another process the one that follows the build. Returns false when a third one was faster. */
  async takeOver(id: string, by: { readonly from: string; readonly owner: string }): Promise<boolean> {
    const updated = await this.#db
      .updateTable("builds")
      .set({ owner: by.owner })
      .where("id", "=", id)
      .where("owner", "=", by.from)
      .where("status", "=", "building")
      .executeTakeFirst();
    return updated.numUpdatedRows === 1n;
  }

  /** The node has nothing of the ended build any more. */
  async released(id: string): Promise<void> {
    await this.#db
      .updateTable("builds")
      .set({ builder_node_id: null })
      .where("id", "=", id)
      .where("status", "in", ["ready", "error"])
      .execute();
  }

  async #write(
    id: string,
    { owner, lines, set }: { owner: string; lines: readonly BuildLogLine[]; set: ReturnType<typeof sql> },
  ): Promise<boolean> {
    return await this.#db.transaction().execute(async (tx) => {
      const { numAffectedRows } = await sql`update builds set ${set} where id = ${id} and owner = ${owner} and status = 'building'`.execute(
        tx,
      );
      if (numAffectedRows !== 1n) return false;
      await appendLines(tx, id, lines);
      return true;
    });
  }
}

function entries(db: Kysely<Database>) {
  return db
    .selectFrom("builds")
    .innerJoin("templates", "templates.id", "builds.template_id")
    .select(["builds.id", "builds.template_id", "builds.status", "builds.cpu_count", "builds.memory_mb", "builds.disk_size_mb"])
    .select(["builds.created_at", "builds.reason", "builds.owner", "builds.builder_node_id", "builds.started_at", "builds.began_at"])
    .select(["builds.attempts", "builds.events_read", "builds.is_legacy", "templates.team_id", "templates.deleted_at"]);
}

export async function countBuilding(tx: Kysely<Database>, teamId: string): Promise<number> {
  const { count } = await tx
    .selectFrom("builds")
    .innerJoin("templates", "templates.id", "builds.template_id")
    .where("templates.team_id", "=", teamId)
    .where("builds.status", "=", sql.lit("building"))
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();
  return count;
}

/** Builds of a template in a state that have one of the tags. */
async function overlapping(
  tx: Kysely<Database>,
  { templateId, status, tags }: { templateId: string; status: "waiting" | "building"; tags: readonly string[] },
): Promise<readonly string[]> {
  if (tags.length === 0) return [];
  const rows = await tx
    .selectFrom("builds")
    .innerJoin("tag_assignments", "tag_assignments.build_id", "builds.id")
    .where("builds.template_id", "=", templateId)
    .where("builds.status", "=", sql.lit(status))
    .where("tag_assignments.tag", "in", tags)
    .select("builds.id")
    .distinct()
    .execute();
  return rows.map(({ id }) => id);
}

async function fail(
  tx: Kysely<Database>,
  id: string,
  { from, owner, reason, lines, now }: { from: string; owner?: string; reason: BuildReason; lines?: readonly BuildLogLine[]; now: number },
): Promise<boolean> {
  let query = tx
    .updateTable("builds")
    .set({ status: "error", request: null, reason: JSON.stringify(reason), updated_at: now, finished_at: now })
    .where("id", "=", id)
    .where("status", "=", from);
  if (owner !== undefined) query = query.where("owner", "=", owner);
  const updated = await query.executeTakeFirst();
  if (updated.numUpdatedRows !== 1n) return false;
  const last = { at: now, level: "error", step: reason.step ?? "", message: `Build failed: ${reason.message}` } as const;
  await appendLines(tx, id, lines ?? [last]);
  await recordBuildEvent(tx, id, { type: "build.lifecycle.failed", at: now, reason: reason.message.slice(0, MAX_REASON) });
  return true;
}
