import type { Clock, PlatformError } from "@skerry/base";
import {
  type Build,
  DEFAULT_TAG,
  GLOBAL_NAMESPACE,
  type ImageRepository,
  LISTED_AS,
  type ListedBuild,
  type ListedTemplate,
  type NewestFirstPage,
  type SandboxRepository,
  type SandboxState,
  type Team,
  type Template,
  type TemplateAlias,
  type TemplateListRepository,
  type TemplateNetworkRepository,
  type TemplateRepository,
  type TemplateVisibilityRepository,
} from "@skerry/store";
import { isUuid } from "@skerry/wire";
import type { NetworkLimits } from "@skerry/wire/node";
import { invalid, publicError } from "../errors.ts";
import { type Page, pageOf } from "../page.ts";
import type { ImageDeletions } from "../sandboxes/images/image-deletions.ts";
import { shownName, type TemplateReference } from "./reference.ts";
import { assertOwnNamespace } from "./template-name.ts";

export interface ResolvedTemplate {
  readonly template: Template;
  readonly build: Build;
  readonly alias: string | undefined;
}

export interface TemplateWithBuilds {
  readonly listed: ListedTemplate;
  readonly builds: Page<ListedBuild>;
}

/** A template's name, without a tag. */
export type TemplateName = Pick<TemplateReference, "namespace" | "name">;

export interface TemplateDeps {
  readonly templates: TemplateRepository;
  readonly templateLists: TemplateListRepository;
  readonly templateVisibility: TemplateVisibilityRepository;
  readonly templateNetwork: TemplateNetworkRepository;
  readonly sandboxes: SandboxRepository;
  readonly images: ImageRepository;
  readonly imageDeletions: ImageDeletions;
  readonly clock: Clock;
}

const STATES = Object.keys(LISTED_AS) as SandboxState[];
const RUNNING = [...STATES.filter((state) => LISTED_AS[state] === "running"), "starting" as const];
const PAUSED = STATES.filter((state) => LISTED_AS[state] === "paused");
const DELETIONS_AT_ONCE = 100;
/** Bounds the answer of the list that has no pages, and the memory that it takes. */
const MAX_LISTED = 5_000;
/** A longer or different text is no id, and may not even be valid text for the database. */
const TEMPLATE_ID = /^[a-z0-9]{1,64}$/;

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
    if (!template) throw notFound(reference);
    const tag = reference.tag ?? DEFAULT_TAG;
    const build = await this.findBuild(template.id, tag);
    if (!build) throw publicError("not_found", `tag '${tag}' does not exist for template '${shown}'`);
    const [first] = await templates.listAliases(template.id);
    return { template, build, alias: first?.alias };
  }

  /** All templates of a team, oldest first. Throws when there are too many for one answer. */
  async listOfTeam(teamId: string): Promise<readonly ListedTemplate[]> {
    const listed = await this.#deps.templateLists.listOfTeam(teamId, MAX_LISTED + 1);
    if (listed.length <= MAX_LISTED) return listed;
    throw invalid(`The team has more than ${MAX_LISTED} templates: list them in pages with GET /v2/templates`);
  }

  /** A team's templates in pages, newest first. */
  async pageOfTeam(teamId: string, { limit, after }: NewestFirstPage): Promise<Page<ListedTemplate>> {
    const page = { limit: limit + 1, ...(after ? { after } : {}) };
    return pageOf(await this.#deps.templateLists.pageOfTeam(teamId, page), limit);
  }

  /** The templates that come with the platform. */
  async listDefault(): Promise<readonly ListedTemplate[]> {
    return await this.#deps.templateLists.listDefault();
  }

  /** A team's template with a page of its builds, newest first. Takes ids only. */
  async getWithBuilds(team: Team, id: string, { limit, after }: NewestFirstPage): Promise<TemplateWithBuilds> {
    const listed = TEMPLATE_ID.test(id) ? await this.#deps.templateLists.find(id) : undefined;
    if (!listed) throw publicError("not_found", `Template ${id} not found`);
    if (listed.template.teamId !== team.id) throw forbidden(id);
    const page = { limit: limit + 1, ...(after ? { after } : {}) };
    return { listed, builds: pageOf(await this.#deps.templateLists.pageBuilds(id, page), limit) };
  }

  /**
   * The template or snapshot of one of the teams. Throws `missing` when there is none, and forbidden when it belongs to another team and the
   * caller may know of it.
   */
  async findOwn(teams: readonly Team[], name: TemplateName, missing = () => notFound(name)): Promise<Template> {
    const shown = shownName(name);
    const template = await this.#search(teams, name);
    if (!template) throw missing();
    if (teams.some(({ id }) => id === template.teamId)) return template;
    // Names can be guessed, ids cannot: who guesses the name of a private template is told nothing.
    throw template.isPublic || template.id === shown ? forbidden(shown) : missing();
  }

  /**
   * The template that a name means, for a team that asks whether the name exists. With a tag, the tag must have a ready build. Throws
   * not_found for a free name, and forbidden for a name of another team.
   */
  async findNamed(team: Team, reference: TemplateReference): Promise<Template> {
    assertOwnNamespace(reference.namespace, team);
    const { templates } = this.#deps;
    const alias = reference.name;
    const template =
      (await templates.findAlias({ namespace: team.slug, alias })) ??
      (reference.namespace === undefined ? await templates.findAlias({ namespace: GLOBAL_NAMESPACE, alias }) : undefined);
    if (!template) throw publicError("not_found", `template alias '${shownName(reference)}' not found`);
    if (template.teamId !== team.id) throw publicError("forbidden", "You don't have access to this template alias");
    if (reference.tag !== undefined && !(await this.findBuild(template.id, reference.tag))) {
      throw publicError("not_found", `tag '${reference.tag}' does not exist for template '${shownName(reference)}'`);
    }
    return template;
  }

  /** Changes what is given of a template of one of the teams. Returns its names. */
  async update(
    teams: readonly Team[],
    name: TemplateName,
    change: {
      readonly isPublic: boolean | undefined;
      readonly claimsBareNames: boolean;
      readonly networkLimits: NetworkLimits | undefined;
    },
  ): Promise<readonly TemplateAlias[]> {
    const { templates, templateVisibility, templateNetwork, clock } = this.#deps;
    const template = await this.findOwn(teams, name);
    const { isPublic, claimsBareNames, networkLimits } = change;
    if (networkLimits && !(await templateNetwork.set(template.id, networkLimits, clock.now()))) throw notFound(name);
    if (isPublic !== undefined) {
      const namespace = teams.find(({ id }) => id === template.teamId)?.slug ?? "";
      const about = { templateId: template.id, namespace, isPublic, claimsBareNames, now: clock.now() };
      const changed = await templateVisibility.change(about);
      if (changed.kind === "not-found") throw notFound(name);
      if (changed.kind === "taken") throw bareNameTaken(namespace, changed.alias);
    }
    return await templates.listAliases(template.id);
  }

  /** Deletes a template or a snapshot of one of the teams, with all its builds. Throws while sandboxes of it run or are paused. */
  async delete(teams: readonly Team[], name: TemplateName): Promise<void> {
    const { templates, sandboxes, images, imageDeletions, clock } = this.#deps;
    const shown = shownName(name);
    const template = await this.findOwn(teams, name);
    if (await sandboxes.hasOfTemplate(template.id, RUNNING)) {
      throw invalid(`cannot delete template '${shown}' because there are running sandboxes using it`);
    }
    if (await sandboxes.hasOfTemplate(template.id, PAUSED)) {
      throw invalid(`cannot delete template '${shown}' because there are paused sandboxes using it`);
    }
    if (!(await templates.delete(template.id, clock.now()))) throw notFound(name);
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

  /** The ready build of a tag, or the ready build with this id. */
  async findBuild(templateId: string, tag: string): Promise<Build | undefined> {
    const { templates } = this.#deps;
    const tagged = await templates.findTaggedBuild(templateId, tag);
    if (tagged || !isUuid(tag)) return tagged;
    const build = await templates.findBuild(templateId, tag);
    return build?.status === "ready" ? build : undefined;
  }
}

export function notFound(name: TemplateName): PlatformError {
  return publicError("not_found", `template '${shownName(name)}' not found`);
}

function forbidden(shown: string): PlatformError {
  return publicError("forbidden", `You don't have access to template '${shown}'`);
}

function bareNameTaken(namespace: string, alias: string): PlatformError {
  const full = shownName({ namespace, name: alias });
  return publicError(
    "conflict",
    `Public template name '${alias}' is already taken. Your template is available at '${full}'. ` +
      "Clients that publish with PATCH /v2/templates publish it under that name alone.",
  );
}
