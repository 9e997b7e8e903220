// One file per container, written before anything is acquired for it and removed after everything is released. Whatever a
// killed daemon leaves behind is found from these files and from the instance's names on the host. They survive the end
// of any process; after a power cut no sandbox is running, so they are not forced to disk.

import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { ContainerRef, NetworkSlot, RuntimeName } from "@skerry/runtime";
import type { NodePaths } from "../paths.ts";
import { readRecordFile, writeRecordFile } from "../record-file.privileged.ts";
import type { AgentIdentity } from "./agent-client.ts";

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
  /** The image that is being written, or that this container is being started from. */
  readonly imageId?: string;
  /** It is brought back with the memory of that image. */
  readonly isRestored?: boolean;
  readonly createdAtMs: number;
  /** The sandbox's first host process and when it started, in clock ticks since boot; a pid alone may be somebody else's. */
  readonly process?: { readonly pid: number; readonly startTime: string };
  /** File name of the runtime's program that it runs on. */
  readonly binary?: string;
}

/** Every area that a container or an image refers to. */
export function areaIdsOf({ area, frozenAreas }: { readonly area?: string; readonly frozenAreas: readonly string[] }): string[] {
  return area === undefined ? [...frozenAreas] : [area, ...frozenAreas];
}

/** How the runtime knows the container. */
export function refOf({ containerId, binary }: SandboxRecord): ContainerRef {
  return { id: containerId, ...(binary === undefined ? {} : { binary }) };
}

export function writeRecord(paths: NodePaths, record: SandboxRecord): void {
  writeRecordFile(paths.container(record.containerId).record, record);
}

/** What the journal says of a container's folder; `undefined` record: the folder was made, its record never written, or lost with the power. */
export interface JournalEntry {
  readonly containerId: string;
  readonly record: SandboxRecord | undefined;
}

/** Records of earlier versions are not read: their sandboxes are given back as what has no record. */
export function readJournal(paths: NodePaths): JournalEntry[] {
  return readdirSync(paths.sandboxes).map((containerId) => {
    const found = readRecordFile<SandboxRecord>(join(paths.sandboxes, containerId, "sandbox.json"), 2);
    return { containerId, record: typeof found === "string" ? undefined : found.record };
  });
}
