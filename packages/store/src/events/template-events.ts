import type { Kysely } from "kysely";
import type { Database } from "../tables.ts";
import type { EventFacts } from "./event.ts";
import type { EventType } from "./event-type.ts";
import { recordEvent } from "./record-event.ts";

interface TemplateChange {
  readonly type: Extract<EventType, `template.${string}`>;
  readonly at: number;
  readonly reason?: string;
  readonly facts?: EventFacts;
}

/** Records a change of a template for the team that owns it. Does nothing for an unknown template. */
export async function recordTemplateEvent(tx: Kysely<Database>, templateId: string, change: TemplateChange): Promise<void> {
  const template = await tx.selectFrom("templates").where("id", "=", templateId).select("team_id").executeTakeFirst();
  if (!template) return;
  const { facts, ...rest } = change;
  await recordEvent(tx, { ...rest, teamId: template.team_id, subjectId: templateId, facts: { templateId, ...facts } });
}

interface BuildChange {
  readonly type: Extract<EventType, `build.${string}`>;
  readonly at: number;
  /** The platform, for what no caller requested. */
  readonly actor?: string;
  readonly reason?: string | undefined;
}

/** Records a change of a build for the team that owns its template. */
export async function recordBuildEvent(tx: Kysely<Database>, buildId: string, change: BuildChange): Promise<void> {
  const build = await tx
    .selectFrom("builds")
    .innerJoin("templates", "templates.id", "builds.template_id")
    .where("builds.id", "=", buildId)
    .select(["builds.template_id", "templates.team_id"])
    .executeTakeFirst();
  if (!build) return;
  const facts = { templateId: build.template_id, buildId };
  await recordEvent(tx, { ...change, teamId: build.team_id, subjectId: buildId, facts });
}
