import type { Snapshot } from "@skerry/store";
import type { Static } from "typebox";
import type { SnapshotSchema } from "../schemas.ts";

export function encodeSnapshot({ template, alias, tag }: Snapshot): Static<typeof SnapshotSchema> {
  const name = alias && `${alias.namespace}/${alias.alias}`;
  return { snapshotID: `${name ?? template.id}:${tag}`, names: name === undefined ? [] : [name] };
}
