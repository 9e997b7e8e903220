import type { Clock } from "@skerry/base";
import {
  type Build,
  DEFAULT_TAG,
  GLOBAL_NAMESPACE,
  type ImageRepository,
  LISTED_AS,
  type ListedTemplate,
  type SandboxRepository,
  type SandboxState,
  type Team,
  type Template,
  type TemplateRepository,
} from "@skerry/store";
import { isUuid } from "@skerry/wire";
import { invalid, publicError } from "../errors.ts";
import type { ImageDeletions } from "../sandboxes/images/image-deletions.ts";
import { shownName, type TemplateReference } from "./reference.ts";

export interface ResolvedTemplate {
  readonly template: Template;
  readonly build: Build;
  readonly alias: string | undefined;
}

/** A template's name, without a tag. */
export type TemplateName = Pick<TemplateReference, "namespace" | "name">;

export interface TemplateDeps {
  readonly templates: TemplateRepository;
  readonly sandboxes: SandboxRepository;
  readonly images: ImageRepository;
  readonly imageDeletions: ImageDeletions;
  readonly clock: Clock;
}

const STATES = Object.keys(LISTED_AS) as SandboxState[];
const RUNNING = [...STATES.filter((state) => LISTED_AS[state] === "running"), "starting" as const];
const PAUSED = STATES.filter((state) => LISTED_AS[state] === "paused");
const DELETIONS_AT_ONCE = 100;

export class TemplateService {
  readonly #deps: TemplateDeps;
  constructor(deps: TemplateDeps) {
    this.#deps = deps;
  }

  /** The template that a team means by a name: the team's own name first, then a global one, then an id. Undefined when the team may not use it. */
  async find(team: Team, name: TemplateName): Promise<Template | undefined> {
    const found = await this.#search([team], name);
    return found && (found.isPublic || found.teamId === team.id) ? found : undefined;
  }

  /** The template and the build that a reference stands for. Throws not_found, which says which of the two is missing. */
  async resolve(team: Team, reference: TemplateReference): Promise<ResolvedTemplate> {
    const { templates } = this.#deps;
    const shown = shownName(reference);
    const template = await this.find(team, reference);
    if (!template) throw publicError("not_found", `template '${shown}' not found`);
    const tag = reference.tag ?? DEFAULT_TAG;
    const build = await this.#findBuild(template.id, tag);
    if (!build) throw publicError("not_found", `tag '${tag}' does not exist for template '${shown}'`);
    const [first] = await templates.listAliases(template.id);
    return { template, build, alias: first?.alias };
  }

  async listOfTeam(teamId: string): Promise<readonly ListedTemplate[]> {
    return await this.#deps.templates.listOfTeam(teamId);
  }

  /** Deletes a template or a snapshot of one of the teams, with all its builds. Throws while sandboxes of it run or are paused. */
  async delete(teams: readonly Team[], name: TemplateName): Promise<void> {
    const { templates, sandboxes, images, imageDeletions, clock } = this.#deps;
    const shown = shownName(name);
    const template = await this.#search(teams, name);
    if (!template) throw publicError("not_found", `template '${shown}' not found`);
    if (!teams.some(({ id }) => id === template.teamId)) throw publicError("forbidden", `You don't have access to template '${shown}'`);
    if (await sandboxes.hasOfTemplate(template.id, RUNNING)) {
      throw invalid(`cannot delete template '${shown}' because there are running sandboxes using it`);
    }
    if (await sandboxes.hasOfTemplate(template.id, PAUSED)) {
      throw invalid(`cannot delete template '${shown}' because there are paused sandboxes using it`);
    }
    if (!(await templates.delete(template.id, clock.now()))) throw publicError("not_found", `template '${shown}' not found`);
    for (const image of await images.listUnsettled("deleting", DELETIONS_AT_ONCE)) imageDeletions.finishInBackground(image);
  }

  async #search(teams: readonly Team[], { namespace, name }: TemplateName): Promise<Template | undefined> {
    const { templates } = this.#deps;
    const namespaces = namespace === undefined ? [...teams.map(({ slug }) => slug), GLOBAL_NAMESPACE] : [namespace];
    for (const each of namespaces) {
      const template = await templates.findAlias({ namespace: each, alias: name });
      if (template) return template;
    }
    return namespace === undefined ? await templates.findTemplate(name) : undefined;
  }

  async #findBuild(templateId: string, tag: string): Promise<Build | undefined> {
    const { templates } = this.#deps;
    const tagged = await templates.findTaggedBuild(templateId, tag);
    if (tagged || !isUuid(tag)) return tagged;
    const build = await templates.findBuild(templateId, tag);
    return build?.status === "ready" ? build : undefined;
  }
}
