import { DEFAULT_TAG, type Team, type TemplateAlias } from "@skerry/store";
import { isUuid } from "@skerry/wire";
import { invalid } from "../errors.ts";

/** Under which name and tag a snapshot is kept. */
export interface SnapshotName {
  /** Undefined for one without a name. */
  readonly alias: TemplateAlias | undefined;
  readonly tag: string;
}

const MAX_LENGTH = 128;
const NAME = /^[a-z0-9_-]+$/;
const TAG = /^[a-z0-9_.-]+$/;

/** Reads `[namespace/]name[:tag]`; the namespace can only be the team's own. */
export function parseSnapshotName(text: string | undefined, team: Team): SnapshotName {
  if (text === undefined) return { alias: undefined, tag: DEFAULT_TAG };
  const trimmed = text.trim().toLowerCase();
  const match = /^(?:([^/]*)\/)?([^/:]*)(?::([^/]*))?$/.exec(trimmed);
  const [, namespace, alias = "", tag = DEFAULT_TAG] = match ?? [];
  const isValid = match && NAME.test(alias) && TAG.test(tag) && (namespace === undefined || NAME.test(namespace));
  if (!isValid || trimmed.length > MAX_LENGTH) {
    throw invalid("Invalid name: it must be [namespace/]name[:tag] of a-z, 0-9, '-' and '_', and of at most 128 characters");
  }
  if (isUuid(tag)) throw invalid("Invalid name: a tag must not look like a build's id");
  if (namespace !== undefined && namespace !== team.slug) {
    throw invalid(`namespace '${namespace}' must match your team '${team.slug}'`);
  }
  return { alias: { namespace: team.slug, alias }, tag };
}
