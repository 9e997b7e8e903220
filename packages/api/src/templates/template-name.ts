// The names and tags that a request gives to something new: a template, a snapshot, or the tags of a build. Reading is strict, because what
// is stored here must be found again by `parseTemplateReference`.

import { DEFAULT_TAG, type Team, type TemplateAlias } from "@skerry/store";
import { isUuid } from "@skerry/wire";
import { invalid } from "../errors.ts";

/** A name that a request gives to a template of its team. */
export interface GivenName {
  /** Without the namespace, which can only be the team's own. */
  readonly alias: string;
  /** Undefined when the text has no tag, or the tag `default`. */
  readonly tag: string | undefined;
}

/** The name and tag of a new snapshot. */
export interface SnapshotName {
  /** Undefined for a snapshot without a name. */
  readonly alias: TemplateAlias | undefined;
  readonly tag: string;
}

const MAX_NAME = 128;
export const NAME = /^[a-z0-9_-]+$/;
export const TAG = /^[a-z0-9_.-]+$/;

/** Reads `[namespace/]name[:tag]`. Throws for any other text, for a namespace of another team, and for a tag that looks like a build's id. */
export function parseTemplateName(text: string, team: Team): GivenName {
  const trimmed = text.trim().toLowerCase();
  const match = /^(?:([^/]*)\/)?([^/:]*)(?::([^/]*))?$/.exec(trimmed);
  const [, namespace, alias = "", tag] = match ?? [];
  const isValid = match && NAME.test(alias) && (tag === undefined || TAG.test(tag)) && (namespace === undefined || NAME.test(namespace));
  if (!isValid || trimmed.length > MAX_NAME) {
    throw invalid(`Invalid name: it must be [namespace/]name[:tag] of a-z, 0-9, '-' and '_', and of at most ${MAX_NAME} characters`);
  }
  if (tag !== undefined && isUuid(tag)) throw invalid("Invalid name: a tag must not look like a build's id");
  assertOwnNamespace(namespace, team);
  return { alias, tag: tag === DEFAULT_TAG ? undefined : tag };
}

/** Reads the tags of a request: in lower case, each once, in the given order. */
export function parseTags(tags: readonly string[]): readonly string[] {
  return [...new Set(tags.map(parseTag))];
}

/** The tags that a build requested under a name gets: that of the name and the given ones, or `default` when there are none. */
export function tagsOfBuild(name: GivenName, tags: readonly string[] = []): readonly string[] {
  const all = [...new Set([...(name.tag === undefined ? [] : [name.tag]), ...parseTags(tags)])];
  return all.length > 0 ? all : [DEFAULT_TAG];
}

/** Reads the name of a new snapshot. */
export function parseSnapshotName(text: string | undefined, team: Team): SnapshotName {
  if (text === undefined) return { alias: undefined, tag: DEFAULT_TAG };
  const { alias, tag = DEFAULT_TAG } = parseTemplateName(text, team);
  return { alias: { namespace: team.slug, alias }, tag };
}

/** Throws for the namespace of another team. */
export function assertOwnNamespace(namespace: string | undefined, team: Team): void {
  if (namespace !== undefined && namespace !== team.slug) throw invalid(`namespace '${namespace}' must match your team '${team.slug}'`);
}

/** Reads a tag that may exist. */
export function normalizeTag(text: string): string {
  const tag = text.trim().toLowerCase();
  if (TAG.test(tag) && tag.length <= MAX_NAME) return tag;
  throw invalid(`Invalid tag: it must be of a-z, 0-9, '-', '_' and '.', and of at most ${MAX_NAME} characters`);
}

function parseTag(text: string): string {
  const tag = normalizeTag(text);
  if (isUuid(tag)) throw invalid("Invalid tag: it must not look like a build's id");
  return tag;
}
