// Records that outlive this process: JSON files with a version, replaced as a whole.

import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { errnoOf } from "@skerry/base";

/** "damaged": it is no JSON, or of a version that this program does not know. */
export type FoundRecord<T> = { readonly record: T } | "missing" | "damaged";

export function readRecordFile<T extends { readonly version: number }>(file: string, version: T["version"]): FoundRecord<T> {
  try {
    const record = JSON.parse(readFileSync(file, "utf8")) as T | null;
    return record?.version === version ? { record } : "damaged";
  } catch (error) {
    if (error instanceof SyntaxError) return "damaged";
    if (["ENOENT", "ENOTDIR"].includes(errnoOf(error) ?? "")) return "missing";
    throw error;
  }
}

/** Enough for what ends with the power anyway. */
export function writeRecordFile(file: string, record: object): void {
  writeFileSync(`${file}.new`, JSON.stringify(record), { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

/** When it returns, the record survives a loss of power. */
export function writeRecordDurably(file: string, record: object): void {
  const descriptor = openSync(`${file}.new`, "w", 0o600);
  try {
    writeFileSync(descriptor, JSON.stringify(record));
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
  renameSync(`${file}.new`, file);
  syncFolder(dirname(file));
}

export function syncFolder(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
