import { DEFAULT_TAG, GLOBAL_NAMESPACE } from "@skerry/store";
import { invalid } from "../errors.ts";
import { NAME, TAG } from "./template-name.ts";

/** `[namespace/]name[:tag]`, as clients write it. */
export interface TemplateReference {
  readonly namespace: string | undefined;
  readonly name: string;
  /** Undefined when the text has no tag, or the tag `default`. May be a build's id. */
  readonly tag: string | undefined;
}

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

/** A template's name as clients see it: global names have no namespace. */
export function shownName({ namespace, name }: { readonly namespace: string | undefined; readonly name: string }): string {
  return namespace === undefined || namespace === GLOBAL_NAMESPACE ? name : `${namespace}/${name}`;
}
