// Which template a request for a build means, and whether its team may build it. Part of the transaction that adds the build.

import type { Kysely } from "kysely";
import { type DialectName, lockTeam } from "./dialect/lock-team.ts";
import type { Database } from "./tables.ts";
import { newTemplateRow, type Template, type TemplateAlias, templateFrom, touchTemplate } from "./templates.ts";

export interface TemplateClaim {
  readonly teamId: string;
  /** Absent for another build of the template `templateId`, whose names stay as they are. */
  readonly alias?: TemplateAlias;
  /** The template to build once more. Absent: the template that has the name, or a new one. */
  readonly templateId?: string;
  /** The id of a new template. */
  readonly newId: string;
  readonly now: number;
}

export type ClaimedTemplate =
  | { readonly kind: "claimed"; readonly template: Template }
  /** The name is the id of a template. */
  | { readonly kind: "name-is-id" }
  /** Another template has the name. */
  | { readonly kind: "name-taken" }
  | { readonly kind: "not-found" }
  | { readonly kind: "deleted" }
  /** The template belongs to another team. */
  | { readonly kind: "foreign" };

/**
 * Finds the template to build, or makes a new one and gives it its name. The team and the template stay locked until the end of the
 * transaction: of two requests for one new name the second finds the template of the first, and no template is deleted meanwhile.
 */
export async function claimTemplate(tx: Kysely<Database>, dialect: DialectName, claim: TemplateClaim): Promise<ClaimedTemplate> {
  await lockTeam(tx, dialect, claim.teamId);
  const holder = claim.alias && (await findHolder(tx, claim.alias));
  if (claim.templateId !== undefined) return await claimById(tx, claim, { id: claim.templateId, holder });
  if (holder && !isBuildable(holder, claim)) return { kind: "name-taken" };
  // A template that was deleted in between has no names left, and the request makes a new one.
  if (holder && (await touchTemplate(tx, holder.id, claim.now))) return { kind: "claimed", template: holder };
  if (claim.alias && (await isTemplateId(tx, claim.alias.alias))) return { kind: "name-is-id" };
  const template = await insertTemplate(tx, { id: claim.newId, teamId: claim.teamId, kind: "template", now: claim.now });
  if (claim.alias) await insertAlias(tx, claim.alias, { templateId: template.id, now: claim.now });
  return { kind: "claimed", template };
}

async function claimById(
  tx: Kysely<Database>,
  claim: TemplateClaim,
  { id, holder }: { readonly id: string; readonly holder: Template | undefined },
): Promise<ClaimedTemplate> {
  const row = await tx.selectFrom("templates").where("id", "=", id).selectAll().executeTakeFirst();
  if (row?.kind !== "template") return { kind: "not-found" };
  if (row.team_id !== claim.teamId) return { kind: "foreign" };
  if (row.deleted_at !== null || !(await touchTemplate(tx, id, claim.now))) return { kind: "deleted" };
  if (claim.alias && !holder) {
    if (await isTemplateId(tx, claim.alias.alias)) return { kind: "name-is-id" };
    await insertAlias(tx, claim.alias, { templateId: id, now: claim.now });
  }
  return holder && holder.id !== id ? { kind: "name-taken" } : { kind: "claimed", template: templateFrom(row) };
}

function isBuildable(template: Template, claim: TemplateClaim): boolean {
  return template.teamId === claim.teamId && template.kind === "template";
}

/** Ids of deleted templates count too: an id never means something else later. */
export async function isTemplateId(tx: Kysely<Database>, text: string): Promise<boolean> {
  return (await tx.selectFrom("templates").where("id", "=", text).select("id").executeTakeFirst()) !== undefined;
}

export async function findHolder(tx: Kysely<Database>, alias: TemplateAlias): Promise<Template | undefined> {
  const row = await tx
    .selectFrom("template_aliases")
    .innerJoin("templates", "templates.id", "template_aliases.template_id")
    .where("template_aliases.namespace", "=", alias.namespace)
    .where("template_aliases.alias", "=", alias.alias)
    .selectAll("templates")
    .executeTakeFirst();
  return row && templateFrom(row);
}

export async function insertAlias(
  tx: Kysely<Database>,
  alias: TemplateAlias,
  about: { readonly templateId: string; readonly now: number },
): Promise<void> {
  await tx
    .insertInto("template_aliases")
    .values({ namespace: alias.namespace, alias: alias.alias, template_id: about.templateId, created_at: about.now })
    .execute();
}

export async function insertTemplate(
  tx: Kysely<Database>,
  about: { readonly id: string; readonly teamId: string; readonly kind: Template["kind"]; readonly now: number },
): Promise<Template> {
  const row = newTemplateRow(about);
  await tx.insertInto("templates").values(row).execute();
  return templateFrom(row);
}
