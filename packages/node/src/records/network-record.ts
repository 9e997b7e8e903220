// The record of a node's network (`network.json`): the address pool that it chose at its first start.

import { type RecordKind, recordParser } from "@skerry/base/records";
import { Type } from "typebox";
import { readRecordFile, writeRecordFile } from "./record-file.privileged.ts";

const NETWORK_KIND = {
  name: "network",
  version: 1,
  unmarkedVersion: 0,
  steps: { 0: (record) => ({ ...record, version: 1 }) },
  schema: Type.Object({ version: Type.Literal(1), pool: Type.String() }),
} as const satisfies RecordKind;

const parse = recordParser(NETWORK_KIND);

/**
 * The address pool, or undefined where there is no record, or a damaged one: then the node chooses a pool again.
 * Throws PlatformError("record_unreadable") for a version that this program does not know.
 */
export function readNetworkPool(file: string): string | undefined {
  const found = readRecordFile(file, parse);
  return typeof found === "string" ? undefined : found.record.pool;
}

export function writeNetworkPool(file: string, pool: string): void {
  writeRecordFile(file, { version: 1, pool });
}
