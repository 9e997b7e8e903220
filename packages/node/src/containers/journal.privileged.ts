// One file per container, written before anything is acquired for it and removed after everything is released. Whatever a
// killed daemon leaves behind is found from these files and from the instance's names on the host. They survive the end
// of any process; after a power cut no sandbox is running, so they are not forced to disk.

import { existsSync, readdirSync, rmSync } from "node:fs";
import { asError, PlatformError } from "@skerry/base";
import type { ContainerRef } from "@skerry/runtime";
import { encodeOptions } from "@skerry/wire/node";
import type { NodePaths } from "../paths.ts";
import { readRecordFile, writeRecordFile } from "../records/record-file.privileged.ts";
import { parseSandboxRecord, type SandboxRecord } from "../records/sandbox-record.ts";

export interface RefersToAreas {
  readonly area?: string;
  readonly frozenAreas: readonly string[];
  readonly successorArea?: string;
}

/** Every area that a container or an image refers to. */
export function areaIdsOf({ area, frozenAreas, successorArea }: RefersToAreas): string[] {
  return [area, ...frozenAreas, successorArea].filter((id) => id !== undefined);
}

/** What is left of a container whose sandbox has moved into an image or another container: nobody's, and to be given back. */
export function leftoverOf(record: SandboxRecord): SandboxRecord {
  return { ...record, sandboxId: "", state: "killing" };
}

/** How the runtime knows the container. */
export function refOf({ containerId, binary }: SandboxRecord): ContainerRef {
  return { id: containerId, ...(binary === undefined ? {} : { binary }) };
}

export function writeRecord(paths: NodePaths, record: SandboxRecord): void {
  writeRecordFile(paths.container(record.containerId).record, record);
}

export function hasFolder(paths: NodePaths, containerId: string): boolean {
  return existsSync(paths.container(containerId).dir);
}

export function removeRecord(paths: NodePaths, containerId: string): void {
  rmSync(paths.container(containerId).record, { force: true });
}

/** What the journal says of a container's folder; `undefined` record: the folder was made, its record never written, or lost with the power. */
export interface JournalEntry {
  readonly containerId: string;
  readonly record: SandboxRecord | undefined;
  /** There is a record, and it can't be read. */
  readonly isDamaged: boolean;
}

/** Throws PlatformError("record_unreadable") for a record of a version that this program does not know, and for unknown options. */
export function readJournal(paths: NodePaths): JournalEntry[] {
  return readdirSync(paths.sandboxes).map((containerId) => {
    const file = paths.container(containerId).record;
    const found = readRecordFile(file, parseSandboxRecord);
    if (typeof found !== "string") assertOptionsKnown(found.record, file);
    return { containerId, record: typeof found === "string" ? undefined : found.record, isDamaged: found === "damaged" };
  });
}

/** The options of a later version may restrict a sandbox that runs: this version must not adopt it without the restriction. */
function assertOptionsKnown({ options }: SandboxRecord, file: string): void {
  try {
    encodeOptions(options);
  } catch (error) {
    const why = `${file} has options that this version does not know (${asError(error).message})`;
    throw new PlatformError("record_unreadable", `${why}. Nothing was changed: start the version that wrote it`, { cause: error });
  }
}
