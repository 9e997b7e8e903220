// One file per sandbox, written before anything is acquired for it and removed after everything is released. Whatever a
// killed daemon leaves behind is found from these files and from the instance's names on the host. They survive the end
// of any process; after a power cut no sandbox is running, so they are not forced to disk.

import { readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { errnoOf } from "@skerry/base";
import type { NetworkSlot, RuntimeName } from "@skerry/runtime";
import type { NodePaths } from "../paths.ts";

export interface SandboxRecord {
  readonly version: 1;
  readonly sandboxId: string;
  readonly state: "creating" | "running" | "killing";
  readonly runtime: RuntimeName;
  readonly slot: NetworkSlot;
  readonly cgroupPath: string;
  readonly templateId: string;
  readonly buildId: string;
  readonly layers: readonly string[];
  readonly allowInternetAccess: boolean;
  readonly agentVersion: string;
  readonly createdAtMs: number;
  /** Set once it runs; the start time tells the process from a later one of the same number. */
  readonly process?: { readonly pid: number; readonly startTime: string };
}

export function writeRecord(paths: NodePaths, record: SandboxRecord): void {
  const { record: file } = paths.sandbox(record.sandboxId);
  writeFileSync(`${file}.new`, JSON.stringify(record), { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

/** What the journal says of a sandbox's folder; `undefined` record: the folder was made, its record never written, or lost with the power. */
export interface JournalEntry {
  readonly sandboxId: string;
  readonly record: SandboxRecord | undefined;
}

export function readJournal(paths: NodePaths): JournalEntry[] {
  return readdirSync(paths.sandboxes).map((sandboxId) => ({
    sandboxId,
    record: readRecord(join(paths.sandboxes, sandboxId, "sandbox.json")),
  }));
}

function readRecord(file: string): SandboxRecord | undefined {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as SandboxRecord;
  } catch (error) {
    if (error instanceof SyntaxError || ["ENOENT", "ENOTDIR"].includes(errnoOf(error) ?? "")) return undefined;
    throw error;
  }
}
