// One file per container, written before anything is acquired for it and removed after everything is released. Whatever a
// killed daemon leaves behind is found from these files and from the instance's names on the host. They survive the end
// of any process; after a power cut no sandbox is running, so they are not forced to disk.

import { existsSync, readdirSync, rmSync } from "node:fs";
import type { ContainerRef, NetworkSlot, RuntimeName } from "@skerry/runtime";
import type { AgentIdentity } from "../agent/agent-client.ts";
import type { NodePaths } from "../paths.ts";
import { readRecordFile, writeRecordFile } from "../record-file.privileged.ts";

/**
 * `pooled`: ready, and nobody's yet. `pausing`, `snapshotting`: being written to `imageId`; once that image is complete,
 * it is what counts, and this container is only to be given back.
 */
export type ContainerState = "creating" | "pooled" | "running" | "pausing" | "snapshotting" | "killing";

export interface SandboxSize {
  readonly cpuCount: number;
  readonly memoryMb: number;
  readonly diskSizeMb: number;
}

/** What a sandbox is made of, wherever it is: running, in the pool, or in an image. */
export interface SandboxMakeup {
  readonly runtime: RuntimeName;
  readonly templateId: string;
  readonly buildId: string;
  readonly size: SandboxSize;
  /** Digests of the template's layers, lowest first. */
  readonly layers: readonly string[];
  /** Areas that are frozen and lie on the layers, lowest first. */
  readonly frozenAreas: readonly string[];
  /** The agent's tree on the host: what a process in an image has open has to be there again. */
  readonly agentDir: string;
  readonly agentVersion: string;
}

export interface SandboxRecord extends SandboxMakeup {
  readonly version: 2;
  readonly containerId: string;
  /** "" while it waits in the pool. */
  readonly sandboxId: string;
  readonly state: ContainerState;
  /** The area that it writes to. */
  readonly area: string;
  readonly slot: NetworkSlot;
  readonly cgroupPath: string;
  readonly allowInternetAccess: boolean;
  readonly identity: AgentIdentity;
  /** While it is written to a snapshot: the area that it goes on with, made before there is no way back. */
  readonly successorArea?: string;
  /** The image that is being written, or that this container is being started from. */
  readonly imageId?: string;
  /** It is brought back with the memory of that image. */
  readonly isRestored?: boolean;
  /** Why its start, or the last snapshot of it, cost it the memory that it was to have. */
  readonly memoryLost?: string;
  /** What it may have beyond its limits for now: see limits/extra-memory.ts. */
  readonly extraMemoryBytes?: number;
  readonly createdAtMs: number;
  /** The sandbox's first host process and when it started, in clock ticks since boot; a pid alone may be somebody else's. */
  readonly process?: { readonly pid: number; readonly startTime: string };
  /** File name of the runtime's program that it runs on. */
  readonly binary?: string;
}

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

/**
 * Records of earlier versions are not read: their sandboxes are given back as what has no record.
 * Throws PlatformError("record_newer") where there are records of a later one.
 */
export function readJournal(paths: NodePaths): JournalEntry[] {
  return readdirSync(paths.sandboxes).map((containerId) => {
    const found = readRecordFile<SandboxRecord>(paths.container(containerId).record, 2);
    return { containerId, record: typeof found === "string" ? undefined : found.record, isDamaged: found === "damaged" };
  });
}
