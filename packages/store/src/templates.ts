import type { Kysely, Selectable } from "kysely";
import type { BuildTable, Database, TemplateTable } from "./tables.ts";

export const GLOBAL_NAMESPACE = "";
export const DEFAULT_TAG = "default";

export interface Template {
  readonly id: string;
  readonly teamId: string;
  readonly isPublic: boolean;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly lastSpawnedAt: number | null;
  readonly spawnCount: number;
  readonly kind: TemplateKind;
}

/** `snapshot`: its builds are images of sandboxes. */
export type TemplateKind = "template" | "snapshot";

export type BuildStatus = "waiting" | "building" | "ready" | "error";

export interface Build {
  readonly id: string;
  readonly templateId: string;
  readonly status: BuildStatus;
  readonly cpuCount: number;
  readonly memoryMb: number;
  readonly diskSizeMb: number;
  /** Layer digests, lowest first. */
  readonly layers: readonly string[];
  readonly defaultUser: string;
  readonly defaultWorkdir: string;
  readonly agentVersion: string;
  readonly createdAt: number;
  /** For the build of a snapshot: the image that sandboxes start from, instead of the layers. */
  readonly image: BuildImage | null;
  /** The only node that has the layers. Absent: every node has them. */
  readonly layersNodeId?: string;
  /** What a build on top of this one goes on from. Absent: the default user in its home directory. */
  readonly context?: BuildContext;
  /** What every sandbox of this build has running. */
  readonly start?: BuildStart;
}

/** What one step of a build leaves to the next one besides files. The JSON form of `BuildContext` in spec/node/node.proto. */
export interface BuildContext {
  readonly user: string;
  /** "": the home directory of the user. */
  readonly workdir: string;
  readonly env: Readonly<Record<string, string>>;
}

/** The JSON form of `StartCommand` in spec/node/node.proto. */
export interface BuildStart extends BuildContext {
  readonly command: string;
  readonly ready: string;
}

export interface BuildImage {
  readonly id: string;
  readonly hasMemory: boolean;
  /** The only node that has the image. */
  readonly nodeId: string;
  /** The sandbox of the image. */
  readonly sourceSandboxId: string;
}

export interface TemplateAlias {
  readonly namespace: string;
  readonly alias: string;
}

export interface ListedTemplate {
  readonly template: Template;
  readonly aliases: readonly TemplateAlias[];
  /** The build of the default tag; undefined when none is ready. */
  readonly build: Build | undefined;
  readonly buildCount: number;
}

/** Templates with their names, builds and tags. */
export class TemplateRepository {
  readonly #db: Kysely<Database>;
  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  async putTemplate(template: { id: string; teamId: string; isPublic: boolean; now: number }): Promise<void> {
    const is_public = template.isPublic ? 1 : 0;
    await this.#db
      .insertInto("templates")
      .values({
        id: template.id,
        team_id: template.teamId,
        is_public,
        created_at: template.now,
        updated_at: template.now,
        last_spawned_at: null,
        spawn_count: 0,
        kind: "template",
        deleted_at: null,
      })
      .onConflict((conflict) => conflict.column("id").doUpdateSet({ is_public, deleted_at: null }))
      .execute();
  }

  /** Gives a template a name. A name of another template moves to this one. */
  async putAlias(alias: TemplateAlias & { readonly templateId: string; readonly now: number }): Promise<void> {
    await this.#db
      .insertInto("template_aliases")
      .values({ namespace: alias.namespace, alias: alias.alias, template_id: alias.templateId, created_at: alias.now })
      .onConflict((conflict) => conflict.columns(["namespace", "alias"]).doUpdateSet({ template_id: alias.templateId }))
      .execute();
  }

  /** Adds a build under a tag, in one transaction. Returns false and changes nothing when the build exists already. */
  async addBuild(build: Build, tag: string): Promise<boolean> {
    return await this.#db.transaction().execute(async (tx) => {
      const added = await tx
        .insertInto("builds")
        .values(buildRow(build))
        .onConflict((conflict) => conflict.column("id").doNothing())
        .executeTakeFirst();
      if (added.numInsertedOrUpdatedRows === 0n) return false;
      await assignTag(tx, { templateId: build.templateId, buildId: build.id, tag, now: build.createdAt });
      await tx.updateTable("templates").set({ updated_at: build.createdAt }).where("id", "=", build.templateId).execute();
      return true;
    });
  }

  async findAlias(alias: TemplateAlias): Promise<Template | undefined> {
    const row = await this.#db
      .selectFrom("template_aliases")
      .innerJoin("templates", "templates.id", "template_aliases.template_id")
      .where("template_aliases.namespace", "=", alias.namespace)
      .where("template_aliases.alias", "=", alias.alias)
      .where("templates.deleted_at", "is", null)
      .selectAll("templates")
      .executeTakeFirst();
    return row && templateFrom(row);
  }

  async findTemplate(id: string): Promise<Template | undefined> {
    const row = await this.#db.selectFrom("templates").where("id", "=", id).where("deleted_at", "is", null).selectAll().executeTakeFirst();
    return row && templateFrom(row);
  }

  /** The ready build that got the tag last. */
  async findTaggedBuild(templateId: string, tag: string): Promise<Build | undefined> {
    const row = await this.#db
      .selectFrom("tag_assignments")
      .innerJoin("builds", "builds.id", "tag_assignments.build_id")
      .where("tag_assignments.template_id", "=", templateId)
      .where("tag_assignments.tag", "=", tag)
      .where("builds.status", "=", "ready")
      .orderBy("tag_assignments.position", "desc")
      .limit(1)
      .selectAll("builds")
      .executeTakeFirst();
    return row && buildFrom(row);
  }

  async findBuild(templateId: string, buildId: string): Promise<Build | undefined> {
    const row = await this.#db
      .selectFrom("builds")
      .where("id", "=", buildId)
      .where("template_id", "=", templateId)
      .selectAll()
      .executeTakeFirst();
    return row && buildFrom(row);
  }

  /** The layers of all builds that sandboxes can still be started from, and of the builds of sandboxes that have not ended. */
  async neededLayers(): Promise<ReadonlySet<string>> {
    const rows = await this.#db
      .selectFrom("builds")
      .innerJoin("templates", "templates.id", "builds.template_id")
      .where((eb) =>
        eb.or([
          eb("templates.deleted_at", "is", null),
          eb("builds.id", "in", eb.selectFrom("sandboxes").where("state", "!=", "ended").select("build_id")),
        ]),
      )
      .select("builds.layers")
      .distinct()
      .execute();
    return new Set(rows.flatMap(({ layers }) => JSON.parse(layers) as string[]));
  }

  /** Ordered by the time of the first name. */
  async listAliases(templateId: string): Promise<readonly TemplateAlias[]> {
    return await this.#db
      .selectFrom("template_aliases")
      .where("template_id", "=", templateId)
      .select(["namespace", "alias"])
      .orderBy("created_at")
      .orderBy("alias")
      .execute();
  }

  /** A build of any template, also of a deleted one: its sandboxes can still be resumed. */
  async findAnyBuild(buildId: string): Promise<Build | undefined> {
    const row = await this.#db.selectFrom("builds").where("id", "=", buildId).selectAll().executeTakeFirst();
    return row && buildFrom(row);
  }

  /**
   * Marks a template as deleted. Its names are free at once, and the images of its builds are to be deleted. Its rows stay for existing
   * sandboxes. Returns false when the template was deleted already.
   */
  async delete(id: string, now: number): Promise<boolean> {
    return await this.#db.transaction().execute(async (tx) => {
      const updated = await tx
        .updateTable("templates")
        .set({ deleted_at: now, updated_at: now })
        .where("id", "=", id)
        .where("deleted_at", "is", null)
        .executeTakeFirst();
      if (updated.numUpdatedRows !== 1n) return false;
      await tx.deleteFrom("template_aliases").where("template_id", "=", id).execute();
      await tx
        .updateTable("images")
        .set({ state: "deleting", state_changed_at: now })
        .where("id", "in", (eb) =>
          eb
            .selectFrom("builds")
            .where("template_id", "=", id)
            .where("image_id", "is not", null)
            .select("image_id")
            .$castTo<{ image_id: string }>(),
        )
        .execute();
      return true;
    });
  }

  /** A team's own templates without its snapshots, oldest first. */
  async listOfTeam(teamId: string): Promise<readonly ListedTemplate[]> {
    const rows = await this.#db
      .selectFrom("templates")
      .where("team_id", "=", teamId)
      .where("kind", "=", "template")
      .where("deleted_at", "is", null)
      .selectAll()
      .orderBy("created_at")
      .orderBy("id")
      .execute();
    return await Promise.all(
      rows.map(async (row) => ({
        template: templateFrom(row),
        aliases: await this.listAliases(row.id),
        build: await this.findTaggedBuild(row.id, DEFAULT_TAG),
        buildCount: await this.#countBuilds(row.id),
      })),
    );
  }

  async #countBuilds(templateId: string): Promise<number> {
    const row = await this.#db
      .selectFrom("builds")
      .where("template_id", "=", templateId)
      .select((eb) => eb.fn.countAll<number>().as("count"))
      .executeTakeFirstOrThrow();
    return row.count;
  }
}

export async function assignTag(
  db: Kysely<Database>,
  tag: { templateId: string; buildId: string; tag: string; now: number },
): Promise<void> {
  const last = await db
    .selectFrom("tag_assignments")
    .where("template_id", "=", tag.templateId)
    .where("tag", "=", tag.tag)
    .select((eb) => eb.fn.max("position").as("position"))
    .executeTakeFirst();
  const position = (last?.position ?? 0) + 1;
  await db
    .insertInto("tag_assignments")
    .values({ template_id: tag.templateId, tag: tag.tag, position, build_id: tag.buildId, assigned_at: tag.now })
    .execute();
}

export function templateFrom(row: Selectable<TemplateTable>): Template {
  return {
    id: row.id,
    teamId: row.team_id,
    isPublic: row.is_public === 1,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    lastSpawnedAt: row.last_spawned_at,
    spawnCount: row.spawn_count,
    kind: row.kind as TemplateKind,
  };
}

export function buildRow(build: Build): Selectable<BuildTable> {
  return {
    id: build.id,
    template_id: build.templateId,
    status: build.status,
    cpu_count: build.cpuCount,
    memory_mb: build.memoryMb,
    disk_size_mb: build.diskSizeMb,
    layers: JSON.stringify(build.layers),
    default_user: build.defaultUser,
    default_workdir: build.defaultWorkdir,
    agent_version: build.agentVersion,
    created_at: build.createdAt,
    updated_at: build.createdAt,
    finished_at: build.status === "ready" ? build.createdAt : null,
    image_id: build.image?.id ?? null,
    image_has_memory: build.image ? Number(build.image.hasMemory) : null,
    node_id: build.image?.nodeId ?? null,
    source_sandbox_id: build.image?.sourceSandboxId ?? null,
    request: null,
    context: build.context === undefined ? null : JSON.stringify(build.context),
    start: build.start === undefined ? null : JSON.stringify(build.start),
    reason: null,
    owner: null,
    builder_node_id: null,
    started_at: null,
    began_at: null,
    layers_node_id: build.layersNodeId ?? null,
    attempts: 0,
    events_read: 0,
  };
}

export function buildFrom(row: Selectable<BuildTable>): Build {
  return {
    id: row.id,
    templateId: row.template_id,
    status: row.status as BuildStatus,
    cpuCount: row.cpu_count,
    memoryMb: row.memory_mb,
    diskSizeMb: row.disk_size_mb,
    layers: JSON.parse(row.layers) as string[],
    defaultUser: row.default_user,
    defaultWorkdir: row.default_workdir,
    agentVersion: row.agent_version,
    createdAt: row.created_at,
    image:
      row.image_id === null
        ? null
        : {
            id: row.image_id,
            hasMemory: row.image_has_memory === 1,
            nodeId: row.node_id ?? "",
            sourceSandboxId: row.source_sandbox_id ?? "",
          },
    ...(row.layers_node_id === null ? {} : { layersNodeId: row.layers_node_id }),
    ...(row.context === null ? {} : { context: JSON.parse(row.context) as BuildContext }),
    ...(row.start === null ? {} : { start: JSON.parse(row.start) as BuildStart }),
  };
}
