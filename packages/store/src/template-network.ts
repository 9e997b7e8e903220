import type { NetworkLimits } from "@skerry/wire/node";
import type { Kysely } from "kysely";
import { recordTemplateEvent } from "./events/template-events.ts";
import type { Database } from "./tables.ts";
import { touchTemplate } from "./templates.ts";

/** How much of the network the sandboxes of a template may use. */
export class TemplateNetworkRepository {
  readonly #db: Kysely<Database>;
  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  /** For sandboxes that are created from now on. Returns false for a template that is unknown or deleted. */
  async set(templateId: string, limits: NetworkLimits, now: number): Promise<boolean> {
    return await this.#db.transaction().execute(async (tx) => {
      if (!(await touchTemplate(tx, templateId, now))) return false;
      await tx
        .updateTable("templates")
        .set({ network_limits: JSON.stringify(limits) })
        .where("id", "=", templateId)
        .execute();
      await recordTemplateEvent(tx, templateId, { type: "template.lifecycle.updated", at: now });
      return true;
    });
  }
}
