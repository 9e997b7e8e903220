// The images of a node's folder, for backups. Reads records only, while the node runs.

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { errnoOf } from "@skerry/base";
import { nodePaths } from "./paths.ts";
import { parseImageRecord } from "./records/image-record.ts";
import { readRecordFile } from "./records/record-file.privileged.ts";
import { parseSandboxRecord } from "./records/sandbox-record.ts";

export interface StoredImage {
  readonly id: string;
  readonly kind: "pause" | "snapshot";
  /** Its record and memory. Neither changes while the image exists. */
  readonly dir: string;
  /** Areas that do not change any more. */
  readonly frozenAreas: readonly string[];
  /** A paused sandbox's own area, which the sandbox changes from its next resume on. */
  readonly ownArea: string | undefined;
}

/** The paused sandboxes and snapshots. Images that the node made for itself are left out: it makes them again. Damaged ones too. */
export function storedImages(dir: string): readonly StoredImage[] {
  const { images, areas } = nodePaths(dir);
  return namesIn(images).flatMap((id) => {
    const found = readImage(dir, id);
    if (found === undefined || found.kind === "template") return [];
    const { kind, local } = found;
    const frozenAreas = local.frozenAreas.map((area) => join(areas, area));
    return { id, kind, dir: join(images, id), frozenAreas, ownArea: local.area && join(areas, local.area) };
  });
}

/** Whether the image of a paused sandbox exists, and no container writes to its area. Containers are recorded before they take anything. */
export function isAtRest(dir: string, { id, ownArea }: StoredImage): boolean {
  const paths = nodePaths(dir);
  const records = namesIn(paths.sandboxes).map((name) => readRecordFile(paths.container(name).record, parseSandboxRecord));
  const isTaken = records.some((found) => typeof found !== "string" && join(paths.areas, found.record.area) === ownArea);
  return !isTaken && readImage(dir, id) !== undefined;
}

function readImage(dir: string, id: string) {
  const found = readRecordFile(nodePaths(dir).image(id).record, parseImageRecord);
  return typeof found === "string" ? undefined : found.record;
}

function namesIn(path: string): readonly string[] {
  try {
    return readdirSync(path);
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return [];
    throw error;
  }
}
