// The record of a node's cluster (`cluster.json`): which cluster the sandboxes of this node belong to.

import { readFileSync } from "node:fs";
import { errnoOf } from "@skerry/base";

export interface ClusterRecord {
  /** "" while the node belongs to no cluster. */
  readonly id: string;
  /** The last control plane of another cluster that this node refused, for `./skerry doctor`. */
  readonly refused?: { readonly id: string; readonly at: string };
}

/** Throws SyntaxError when the record is damaged. */
export function readClusterRecord(file: string): ClusterRecord {
  try {
    const { id, refused } = JSON.parse(readFileSync(file, "utf8")) as ClusterRecord;
    if (typeof id !== "string") throw new SyntaxError(`${file} names no cluster`);
    return { id, ...(refused === undefined ? {} : { refused }) };
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return { id: "" };
    throw error;
  }
}
