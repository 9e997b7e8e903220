// The record of a node's cluster (`cluster.json`): which cluster the sandboxes of this node belong to.

import { PlatformError } from "@skerry/base";
import { type RecordKind, type RecordOf, recordParser } from "@skerry/base/records";
import { Type } from "typebox";
import { readRecordFile } from "./record-file.privileged.ts";

const CLUSTER_KIND = {
  name: "cluster",
  version: 1,
  unmarkedVersion: 0,
  steps: { 0: (record) => ({ ...record, version: 1 }) },
  schema: Type.Object({
    version: Type.Literal(1),
    /** "" while the node belongs to no cluster. */
    id: Type.String(),
    /** The last control plane of another cluster that this node refused, for `./skerry doctor`. */
    refused: Type.Optional(Type.Object({ id: Type.String(), at: Type.String() })),
  }),
} as const satisfies RecordKind;

export type ClusterRecord = RecordOf<typeof CLUSTER_KIND>;

const parse = recordParser(CLUSTER_KIND);

/** Throws PlatformError("record_unreadable") when the record is damaged, or of a version that this program does not know. */
export function readClusterRecord(file: string): ClusterRecord {
  const found = readRecordFile(file, parse);
  if (found === "missing") return { version: 1, id: "" };
  if (found !== "damaged") return found.record;
  const why = `${file} is damaged, so it is unknown which cluster the sandboxes of this node belong to`;
  throw new PlatformError(
    "record_unreadable",
    `${why}. Nothing was changed: restore the file, or delete it to give them to the next cluster that asks`,
  );
}
