// Records that outlive this process: JSON files with a version, replaced as a whole.

import { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { dirname } from "node:path";
import { errnoOf, PlatformError } from "@skerry/base";

/** "damaged": it is no JSON, or of no version. */
export type FoundRecord<T> = { readonly record: T } | "missing" | "damaged";

/** Throws PlatformError("record_newer") for one that a later version of this program has written: what it means is not known here. */
export function readRecordFile<T extends { readonly version: number }>(file: string, version: T["version"]): FoundRecord<T> {
  try {
    const record = JSON.parse(readFileSync(file, "utf8")) as T | null;
    if (Number(record?.version) > version) throw newerRecord(file, { found: Number(record?.version), known: version });
    return record?.version === version ? { record } : "damaged";
  } catch (error) {
    if (error instanceof SyntaxError) return "damaged";
    if (["ENOENT", "ENOTDIR"].includes(errnoOf(error) ?? "")) return "missing";
    throw error;
  }
}

function newerRecord(file: string, { found, known }: { found: number; known: number }): PlatformError {
  const why = `${file} was written by a later version of Skerry (version ${found} of such files, and this one knows ${known})`;
  return new PlatformError("record_newer", `${why}: start that version; nothing was changed`);
}

/** Enough for what ends with the power anyway. */
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

/** Forces a record to disk that is there, behind the caller's back. Nothing happens when it is gone. */
export async function syncRecordFile(file: string): Promise<void> {
  try {
    await using handle = await open(file, "r");
    // On the file systems that nodes are on, this takes with it that the file has this name.
    await handle.sync();
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") throw error;
  }
}

export function syncFolder(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
