import type { Kysely } from "kysely";
import { recordTemplateEvent } from "./events/template-events.ts";
import type { Database } from "./tables.ts";
import { GLOBAL_NAMESPACE, touchTemplate } from "./templates.ts";

export interface VisibilityChange {
  readonly templateId: string;
  /** The namespace of the template's team. */
  readonly namespace: string;
  readonly isPublic: boolean;
  /** Whether a template that becomes public also gets its names without the namespace. */
  readonly claimsBareNames: boolean;
  readonly now: number;
}

export type ChangedVisibility =
  | { readonly kind: "changed" }
  /** The template is unknown or deleted. */
  | { readonly kind: "not-found" }
  /** Another template has the bare name; nothing was changed. */
  | { readonly kind: "taken"; readonly alias: string };

/** Who may use a template, and under which names. */
export class TemplateVisibilityRepository {
  readonly #db: Kysely<Database>;
  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  /** Publishes a template, or makes it private again; then the bare names that it claimed are free. */
  async change(change: VisibilityChange): Promise<ChangedVisibility> {
    try {
      return await this.#db.transaction().execute(async (tx) => {
        if (!(await touchTemplate(tx, change.templateId, change.now))) return { kind: "not-found" };
        await tx
          .updateTable("templates")
          .set({ is_public: change.isPublic ? 1 : 0 })
          .where("id", "=", change.templateId)
          .execute();
        if (!change.isPublic) await releaseBareNames(tx, change);
        else if (change.claimsBareNames) await claimBareNames(tx, change);
        const facts = { isPublic: change.isPublic };
        await recordTemplateEvent(tx, change.templateId, { type: "template.lifecycle.updated", at: change.now, facts });
        return { kind: "changed" };
      });
    } catch (error) {
      if (error instanceof NameTaken) return { kind: "taken", alias: error.alias };
      throw error;
    }
  }
}

/** Rolls the transaction back. */
class NameTaken extends Error {
  readonly alias: string;
  constructor(alias: string) {
    super("another template has the name");
    this.alias = alias;
  }
}

/** In one order, so that two publishers of the same names do not wait for each other. */
async function claimBareNames(tx: Kysely<Database>, change: VisibilityChange): Promise<void> {
  for (const alias of (await ownNames(tx, change)).toSorted()) {
    const row = { namespace: GLOBAL_NAMESPACE, alias, template_id: change.templateId, created_at: change.now };
    await tx
      .insertInto("template_aliases")
      .values(row)
      .onConflict((conflict) => conflict.columns(["namespace", "alias"]).doNothing())
      .execute();
    const holder = await tx
      .selectFrom("template_aliases")
      .where("namespace", "=", GLOBAL_NAMESPACE)
      .where("alias", "=", alias)
      .select("template_id")
      .executeTakeFirst();
    if (holder?.template_id !== change.templateId) throw new NameTaken(alias);
  }
}

/** A bare name without the same name in the team's namespace is not one that was claimed: it came with the platform. */
async function releaseBareNames(tx: Kysely<Database>, change: VisibilityChange): Promise<void> {
  const names = await ownNames(tx, change);
  if (names.length === 0) return;
  await tx
    .deleteFrom("template_aliases")
    .where("namespace", "=", GLOBAL_NAMESPACE)
    .where("template_id", "=", change.templateId)
    .where("alias", "in", names)
    .execute();
}

async function ownNames(tx: Kysely<Database>, change: VisibilityChange): Promise<readonly string[]> {
  const rows = await tx
    .selectFrom("template_aliases")
    .where("template_id", "=", change.templateId)
    .where("namespace", "=", change.namespace)
    .select("alias")
    .execute();
  return rows.map(({ alias }) => alias);
}
