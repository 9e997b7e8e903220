// The volumes of a node's folder, for backups and for the end of a data folder.

import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { Logger } from "@skerry/base";
import { isMountPoint } from "@skerry/layers";
import { nodePaths } from "./paths.ts";
import { readRecordFile } from "./records/record-file.privileged.ts";
import { parseVolumeRecord } from "./records/volume-record.ts";
import { volumesFolderOf, volumesOfLastStart } from "./volumes/sandbox-volumes.privileged.ts";
import { isVolumeId } from "./volumes/volume-mount.ts";

export interface StoredVolume {
  readonly id: string;
  /** Its record, which does not change. */
  readonly record: string;
  /** Its disk file, which sandboxes and callers write to. */
  readonly diskFile: string;
  /** Where it is mounted, if something uses it. */
  readonly mountPoint: string | undefined;
}

/** The volumes of a node, which may run. Damaged ones are left out. */
export function storedVolumes(dir: string): readonly StoredVolume[] {
  const folder = volumesFolderOf(dir);
  const ids = existsSync(folder) ? readdirSync(folder).filter(isVolumeId) : [];
  return ids.flatMap((id) => {
    const [record = "", diskFile = "", mountPoint = ""] = ["volume.json", "image", "fs"].map((name) => join(folder, id, name));
    if (typeof readRecordFile(record, parseVolumeRecord) === "string") return [];
    return { id, record, diskFile, mountPoint: isMountPoint(mountPoint) ? mountPoint : undefined };
  });
}

/** Where a copy of the volumes lies in a node's folder. */
export function copiedVolumesIn(dir: string): string {
  return nodePaths(dir).volumes;
}

/** Makes the place of a copy of a volume in a folder of volumes. */
export function makeVolumePlace(folder: string, id: string): string {
  const dir = join(folder, id);
  mkdirSync(folder, { recursive: true });
  for (const path of [dir, join(dir, "fs")]) mkdirSync(path, { mode: 0o700 });
  return dir;
}

/** The folder of volumes, unless it lies in the node's own folder. */
export function volumesElsewhere(dir: string): string | undefined {
  const folder = volumesFolderOf(dir);
  return folder === nodePaths(dir).volumes ? undefined : folder;
}

/** Deletes the volumes of a node that does not run. Throws PlatformError("already_running") if another node uses their folder. */
export async function removeVolumes(dir: string, logger: Logger): Promise<number> {
  return await volumesOfLastStart({ dir }, logger).removeAll();
}
