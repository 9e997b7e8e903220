import { DEFAULT_TAG, GLOBAL_NAMESPACE, type Team, type TemplateAlias } from "@skerry/store";
import { isUuid } from "@skerry/wire";
import { invalid } from "../errors.ts";

/** `[namespace/]name[:tag]`, as clients write it. */
export interface TemplateReference {
  readonly namespace: string | undefined;
  readonly name: string;
  /** Undefined when the text has no tag, or the tag `default`. May be a build's id. */
  readonly tag: string | undefined;
}

/** The name and tag of a new snapshot. */
export interface SnapshotName {
  /** Undefined for a snapshot without a name. */
  readonly alias: TemplateAlias | undefined;
  readonly tag: string;
}

const MAX_SNAPSHOT_NAME = 128;
const NAME = /^[a-z0-9_-]+$/;
const TAG = /^[a-z0-9_.-]+$/;

export function parseTemplateReference(text: string): TemplateReference {
  const trimmed = text.trim().toLowerCase();
  const slash = trimmed.indexOf("/");
  const rest = trimmed.slice(slash + 1);
  const colon = rest.indexOf(":");
  const namespace = slash < 0 ? undefined : trimmed.slice(0, slash);
  const name = colon < 0 ? rest : rest.slice(0, colon);
  const tag = colon < 0 ? undefined : rest.slice(colon + 1);
  if (!NAME.test(name) || (namespace !== undefined && !NAME.test(namespace)) || (tag !== undefined && !TAG.test(tag))) {
    throw invalid("Invalid template reference: invalid template ID: it must be [namespace/]name[:tag] of a-z, 0-9, '-' and '_'");
  }
  return { namespace, name, tag: tag === DEFAULT_TAG ? undefined : tag };
}

/** Reads the name of a new snapshot. Its namespace can only be the team's own. */
export function parseSnapshotName(text: string | undefined, team: Team): SnapshotName {
  if (text === undefined) return { alias: undefined, tag: DEFAULT_TAG };
  const trimmed = text.trim().toLowerCase();
  const match = /^(?:([^/]*)\/)?([^/:]*)(?::([^/]*))?$/.exec(trimmed);
  const [, namespace, alias = "", tag = DEFAULT_TAG] = match ?? [];
  const isValid = match && NAME.test(alias) && TAG.test(tag) && (namespace === undefined || NAME.test(namespace));
  if (!isValid || trimmed.length > MAX_SNAPSHOT_NAME) {
    throw invalid("Invalid name: it must be [namespace/]name[:tag] of a-z, 0-9, '-' and '_', and of at most 128 characters");
  }
  if (isUuid(tag)) throw invalid("Invalid name: a tag must not look like a build's id");
  if (namespace !== undefined && namespace !== team.slug) {
    throw invalid(`namespace '${namespace}' must match your team '${team.slug}'`);
  }
  return { alias: { namespace: team.slug, alias }, tag };
}

/** A template's name as clients see it: global names have no namespace. */
export function shownName({ namespace, name }: { readonly namespace: string | undefined; readonly name: string }): string {
  return namespace === undefined || namespace === GLOBAL_NAMESPACE ? name : `${namespace}/${name}`;
}
