// The records of containers: one file each, which is written before anything is acquired and removed after everything is released. After
// the end of a daemon, the next one finds its remains by these files and by the instance's names on the host. The files survive the end of
// any process. They are not forced to disk before a start, because no sandbox runs after a power failure.

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

/** The record of a container whose sandbox has moved into an image or another container. It belongs to no sandbox, and must be released. */
export function leftoverOf(record: SandboxRecord): SandboxRecord {
  return { ...record, sandboxId: "", state: "killing" };
}

/** The runtime's reference to the container. */
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

/** A container's folder. Without a record, the folder was made and the record not written yet, or lost in a power failure. */
export interface JournalEntry {
  readonly containerId: string;
  readonly record: SandboxRecord | undefined;
  /** The record exists and is damaged. */
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
