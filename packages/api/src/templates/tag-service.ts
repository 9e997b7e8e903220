// Reads and changes the tags of templates. Only the team of a template may do either.

import type { Clock } from "@skerry/base";
import { type AssignedTag, DEFAULT_TAG, type TagAssignment, type TagRepository, type Team, type Template } from "@skerry/store";
import { invalid, publicError } from "../errors.ts";
import { type Page, pageOf } from "../page.ts";
import { shownName, type TemplateReference } from "./reference.ts";
import { assertOwnNamespace, parseTags, TAG } from "./template-name.ts";
import { notFound, type TemplateName, type TemplateService } from "./template-service.ts";

export interface TagDeps {
  readonly tags: TagRepository;
  readonly templates: TemplateService;
  readonly clock: Clock;
}

/** A build and the tags that it got. */
export interface TaggedBuild {
  readonly buildId: string;
  readonly tags: readonly string[];
}

export const TAG_SORTS = ["latest_asc", "latest_desc", "name_asc", "name_desc"] as const;
export type TagSort = (typeof TAG_SORTS)[number];

/** A tag that serves a build, and when it was assigned last. */
export interface ServedTag {
  readonly tag: string;
  readonly assignedAt: number;
}

export interface TagGroup extends ServedTag {
  /** Newest first. */
  readonly assignments: readonly TagAssignment[];
  /** Whether the tag has older assignments. */
  readonly hasMore: boolean;
}

export interface TagGroupQuery {
  readonly assignmentLimit: number;
  readonly tagsLimit: number;
  readonly sort: TagSort;
  /** Only tags that contain this text. */
  readonly search: string | undefined;
  /** The last tag of the previous page. */
  readonly after: ServedTag | undefined;
}

export class TagService {
  readonly #deps: TagDeps;
  constructor(deps: TagDeps) {
    this.#deps = deps;
  }

  /** Gives the build that a reference stands for more tags. */
  async assign(team: Team, reference: TemplateReference, asked: readonly string[]): Promise<TaggedBuild> {
    const { tags: repository, templates, clock } = this.#deps;
    const tags = parseTags(asked);
    if (tags.length === 0) throw invalid("At least one tag is required");
    assertOwnNamespace(reference.namespace, team);
    const source = reference.tag ?? DEFAULT_TAG;
    const missing = () => publicError("not_found", `Template '${shownName(reference)}' with tag '${source}' not found`);
    const template = await templates.findOwn([team], reference, missing);
    const build = await templates.findBuild(template.id, source);
    if (!build) throw missing();
    if (!(await repository.assign({ templateId: template.id, buildId: build.id, tags, now: clock.now() }))) throw missing();
    return { buildId: build.id, tags };
  }

  /** Removes tags from a template. The builds stay. */
  async remove(team: Team, name: TemplateName, asked: readonly string[]): Promise<void> {
    const tags = parseTags(asked);
    if (tags.length === 0) throw invalid("At least one tag is required");
    if (tags.includes(DEFAULT_TAG)) throw invalid(`Cannot delete the '${DEFAULT_TAG}' tag`);
    assertOwnNamespace(name.namespace, team);
    const { id } = await this.#deps.templates.findOwn([team], name);
    await this.#deps.tags.remove({ templateId: id, tags, now: this.#deps.clock.now() });
  }

  /** The latest assignment of each tag, by the name of the tag. */
  async list(team: Team, name: TemplateName): Promise<readonly AssignedTag[]> {
    const { id } = await this.#deps.templates.findOwn([team], name);
    return (await this.#deps.tags.list(id)).toSorted((a, b) => compareText(a.tag, b.tag));
  }

  async count(team: Team, name: TemplateName): Promise<number> {
    return (await this.#served(team, name)).length;
  }

  async exists(team: Team, name: TemplateName, tag: string): Promise<boolean> {
    return (await this.#served(team, name)).some((served) => served.tag === tag);
  }

  /** One page of the tags, each with its latest assignments. */
  async groups(team: Team, name: TemplateName, query: TagGroupQuery): Promise<Page<TagGroup>> {
    const { id } = await this.#visible(team, name);
    const search = query.search?.trim().toLowerCase() ?? "";
    // No tag contains any other character.
    if (search !== "" && !TAG.test(search)) return { items: [], last: undefined };
    const { after } = query;
    const order = ORDERS[query.sort];
    const matching = (await this.#deps.tags.listServed(id))
      .filter((served) => served.tag.includes(search) && (after === undefined || order(served, after) > 0))
      .toSorted(order);
    const { items, last } = pageOf(matching, query.tagsLimit);
    const limit = query.assignmentLimit;
    const names = items.map(({ tag }) => tag);
    const found = Map.groupBy(await this.#deps.tags.listAssignments(id, names, limit + 1), ({ tag }) => tag);
    const groups = items.map((served) => {
      const assignments = found.get(served.tag) ?? [];
      return { ...served, assignments: assignments.slice(0, limit), hasMore: assignments.length > limit };
    });
    return { items: groups, last: last && groups.at(-1) };
  }

  /** One page of the history of a tag, newest first. */
  async history(
    team: Team,
    name: TemplateName,
    query: { readonly tag: string; readonly limit: number; readonly below: number | undefined },
  ): Promise<Page<TagAssignment>> {
    const { id } = await this.#visible(team, name);
    const page = { limit: query.limit + 1, ...(query.below === undefined ? {} : { below: query.below }) };
    return pageOf(await this.#deps.tags.pageAssignments(id, query.tag, page), query.limit);
  }

  async #served(team: Team, name: TemplateName): Promise<readonly ServedTag[]> {
    return await this.#deps.tags.listServed((await this.#visible(team, name)).id);
  }

  /** Does not tell a foreign template from an unknown one. */
  async #visible(team: Team, name: TemplateName): Promise<Template> {
    const template = await this.#deps.templates.find(team, name);
    if (template?.teamId === team.id) return template;
    throw notFound(name);
  }
}

type Order = (a: ServedTag, b: ServedTag) => number;

const ORDERS: Readonly<Record<TagSort, Order>> = {
  latest_asc: (a, b) => a.assignedAt - b.assignedAt || compareText(a.tag, b.tag),
  latest_desc: (a, b) => b.assignedAt - a.assignedAt || compareText(a.tag, b.tag),
  name_asc: (a, b) => compareText(a.tag, b.tag),
  name_desc: (a, b) => compareText(b.tag, a.tag),
};

/** By code unit, so that the order does not depend on the database or the locale. */
function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
