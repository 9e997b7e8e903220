// Questions about a node's folder that are answered without a running node. Nobody but this package knows what the folder contains.

import { readdirSync, rmSync } from "node:fs";
import { errnoOf } from "@skerry/base";
import { nodePaths } from "./paths.ts";

export { isAtRest, type StoredImage, storedImages } from "./stored-images.privileged.ts";
export {
  copiedVolumesIn,
  makeVolumePlace,
  removeVolumes,
  type StoredVolume,
  storedVolumes,
  volumesElsewhere,
} from "./stored-volumes.privileged.ts";

import { type ClusterRecord, readClusterRecord } from "./records/cluster-record.ts";
import { parseImageRecord } from "./records/image-record.ts";
import { readRecordFile } from "./records/record-file.privileged.ts";
import { parseSandboxRecord } from "./records/sandbox-record.ts";

/** Whether the node has any container, including one that an interrupted operation left. */
export function hasContainers(dir: string): boolean {
  return namesIn(nodePaths(dir).sandboxes).length > 0;
}

/**
 * Names of the agent trees that containers and images need: a process in an image has files of its tree open. Damaged records are
 * left out: their sandboxes can't be started. Throws PlatformError("record_unreadable") for a record of an unknown version.
 */
export function agentTreesInUse(dir: string): ReadonlySet<string> {
  const paths = nodePaths(dir);
  const found = [
    ...namesIn(paths.sandboxes).map((id) => readRecordFile(paths.container(id).record, parseSandboxRecord)),
    ...namesIn(paths.images).map((id) => readRecordFile(paths.image(id).record, parseImageRecord)),
  ];
  return new Set(found.flatMap((one) => (typeof one === "string" ? [] : one.record.agent.digest)));
}

export interface ClusterOfNode extends ClusterRecord {
  /** Deleting this file gives up what the node holds. */
  readonly file: string;
}

/** The cluster that the node belongs to, and which other one asked for its sandboxes last. */
export function clusterOfNode(dir: string): ClusterOfNode {
  const file = nodePaths(dir).cluster;
  return { file, ...readClusterRecord(file) };
}

/** Frees the disk space that a node reserves for a full disk. The running node allocates it again when there is enough space. */
export function releaseReserve(dir: string): void {
  rmSync(nodePaths(dir).reserve, { force: true });
}

function namesIn(path: string): string[] {
  try {
    return readdirSync(path);
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return [];
    throw error;
  }
}
