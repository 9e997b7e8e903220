// Reads and writes records: JSON files with a version, each replaced as a whole.

import { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { dirname } from "node:path";
import { errnoOf } from "@skerry/base";
import { syncDirectory } from "@skerry/base/linux";
import type { ParsedRecord, RecordParser } from "@skerry/base/records";

export type FoundRecord<T> = ParsedRecord<T> | "missing";

/** Throws PlatformError("record_unreadable") for a record of a version that this program does not know. */
export function readRecordFile<T>(file: string, parse: RecordParser<T>): FoundRecord<T> {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(errnoOf(error) ?? "")) return "missing";
    throw error;
  }
  return parse(text, file);
}

/** Replaces a record without flushing it: for state that a loss of power ends anyway. */
export function writeRecordFile(file: string, record: object): void {
  const staged = `${file}.new`;
  try {
    writeFileSync(staged, JSON.stringify(record), { mode: 0o600 });
    renameSync(staged, file);
  } catch (error) {
    rmSync(staged, { force: true });
    throw error;
  }
}

/** Replaces a record. It survives a loss of power once the call returns. */
export function writeRecordDurably(file: string, record: object): void {
  const descriptor = openSync(`${file}.new`, "w", 0o600);
  try {
    writeFileSync(descriptor, JSON.stringify(record));
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
  renameSync(`${file}.new`, file);
  syncDirectory(dirname(file));
}

/** Flushes an existing record to disk. Does nothing if the record is gone. */
export async function syncRecordFile(file: string): Promise<void> {
  try {
    await using handle = await open(file, "r");
    // On the file systems that nodes use, this also flushes the name of the file.
    await handle.sync();
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") throw error;
  }
}
