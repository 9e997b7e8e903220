import type { NetworkLimits } from "@skerry/wire/node";
import type { Kysely, Selectable } from "kysely";
import { recordTemplateEvent } from "./events/template-events.ts";
import { networkLimitsFrom } from "./network-limits.ts";
import type { BuildTable, Database, TemplateTable } from "./tables.ts";
import { mountsFrom, mountsText, type VolumeMount } from "./volume.ts";

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
  /** Whether it came with the platform. */
  readonly isDefault: boolean;
  readonly description: string | undefined;
  /** How much of the network its sandboxes may use. */
  readonly networkLimits: NetworkLimits;
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
  /** Of a snapshot: the volumes of its sandbox. Absent: none. */
  readonly volumeMounts?: readonly VolumeMount[];
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

/** A template that the platform itself brings. */
export interface PutTemplate {
  readonly id: string;
  readonly teamId: string;
  readonly isPublic: boolean;
  readonly isDefault?: boolean;
  readonly description?: string | undefined;
  readonly now: number;
}

/** Templates with their names, builds and tags. */
export class TemplateRepository {
  readonly #db: Kysely<Database>;
  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  /** Adds a template, or sets what is given for an existing one. A deleted template is there again. */
  async putTemplate(template: PutTemplate): Promise<void> {
    const { id, teamId, now } = template;
    const set = {
      is_public: template.isPublic ? 1 : 0,
      is_default: template.isDefault ? 1 : 0,
      description: template.description ?? null,
      deleted_at: null,
    };
    await this.#db
      .insertInto("templates")
      .values({ ...newTemplateRow({ id, teamId, kind: "template", now }), ...set })
      .onConflict((conflict) => conflict.column("id").doUpdateSet(set))
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
      await touchTemplate(tx, build.templateId, build.createdAt);
      await assignTag(tx, { templateId: build.templateId, buildId: build.id, tag, now: build.createdAt });
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
      .orderBy("namespace", "desc")
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
      await recordTemplateEvent(tx, id, { type: "template.lifecycle.deleted", at: now });
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
}

/**
 * Notes that a template was changed, and locks it until the end of the transaction. Whatever adds assignments of a tag does this first,
 * because it counts them. Returns false for a template that is unknown or deleted.
 */
export async function touchTemplate(tx: Kysely<Database>, templateId: string, now: number): Promise<boolean> {
  const touched = await tx
    .updateTable("templates")
    .set({ updated_at: now })
    .where("id", "=", templateId)
    .where("deleted_at", "is", null)
    .executeTakeFirst();
  return touched.numUpdatedRows === 1n;
}

/**
 * Gives a build a tag, as the latest of the tag's assignments. Does nothing when it is that already. Precondition: the template is locked
 * (`touchTemplate`).
 */
export async function assignTag(
  tx: Kysely<Database>,
  tag: { readonly templateId: string; readonly buildId: string; readonly tag: string; readonly now: number },
): Promise<void> {
  const last = await tx
    .selectFrom("tag_assignments")
    .where("template_id", "=", tag.templateId)
    .where("tag", "=", tag.tag)
    .select(["position", "build_id"])
    .orderBy("position", "desc")
    .limit(1)
    .executeTakeFirst();
  if (last?.build_id === tag.buildId) return;
  const position = (last?.position ?? 0) + 1;
  await tx
    .insertInto("tag_assignments")
    .values({ template_id: tag.templateId, tag: tag.tag, position, build_id: tag.buildId, assigned_at: tag.now })
    .execute();
}

/** A private template without builds. */
export function newTemplateRow(about: {
  readonly id: string;
  readonly teamId: string;
  readonly kind: TemplateKind;
  readonly now: number;
}): Selectable<TemplateTable> {
  return {
    id: about.id,
    team_id: about.teamId,
    is_public: 0,
    created_at: about.now,
    updated_at: about.now,
    last_spawned_at: null,
    spawn_count: 0,
    kind: about.kind,
    deleted_at: null,
    is_default: 0,
    description: null,
    network_limits: null,
  };
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
    isDefault: row.is_default === 1,
    description: row.description ?? undefined,
    networkLimits: networkLimitsFrom(row.network_limits),
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
    is_legacy: 0,
    volume_mounts: mountsText(build.volumeMounts ?? []),
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
    ...(row.volume_mounts === null ? {} : { volumeMounts: mountsFrom(row.volume_mounts) }),
  };
}
