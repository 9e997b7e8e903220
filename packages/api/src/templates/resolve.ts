import { type Build, DEFAULT_TAG, GLOBAL_NAMESPACE, type Team, type Template, type TemplateRepository } from "@skerry/store";
import { isUuid } from "@skerry/wire";
import { publicError } from "../errors.ts";
import type { TemplateReference } from "./reference.ts";

export interface ResolvedTemplate {
  readonly template: Template;
  readonly build: Build;
  readonly alias: string | undefined;
}

/** Finds the template that a team means: its own name, then a global name, then an id. Undefined when it may not use one. */
export async function findTemplate(
  templates: TemplateRepository,
  team: Team,
  reference: Pick<TemplateReference, "namespace" | "name">,
): Promise<Template | undefined> {
  const { namespace, name } = reference;
  const found =
    namespace !== undefined
      ? await templates.findAlias({ namespace, alias: name })
      : ((await templates.findAlias({ namespace: team.slug, alias: name })) ??
        (await templates.findAlias({ namespace: GLOBAL_NAMESPACE, alias: name })) ??
        (await templates.findTemplate(name)));
  return found && (found.isPublic || found.teamId === team.id) ? found : undefined;
}

/** The template and the build that a reference stands for; not_found says which of the two is missing. */
export async function resolveTemplate(templates: TemplateRepository, team: Team, reference: TemplateReference): Promise<ResolvedTemplate> {
  const shown = reference.namespace === undefined ? reference.name : `${reference.namespace}/${reference.name}`;
  const template = await findTemplate(templates, team, reference);
  if (!template) throw publicError("not_found", `template '${shown}' not found`);
  const tag = reference.tag ?? DEFAULT_TAG;
  const build = await findBuild(templates, template.id, tag);
  if (!build) throw publicError("not_found", `tag '${tag}' does not exist for template '${shown}'`);
  const [first] = await templates.listAliases(template.id);
  return { template, build, alias: first?.alias };
}

async function findBuild(templates: TemplateRepository, templateId: string, tag: string): Promise<Build | undefined> {
  const tagged = await templates.findTaggedBuild(templateId, tag);
  if (tagged || !isUuid(tag)) return tagged;
  const build = await templates.findBuild(templateId, tag);
  return build?.status === "ready" ? build : undefined;
}
