// Paused sandboxes and snapshots are copied while the platform runs. What an image consists of does not change, apart from the own area of a
// paused sandbox, which the sandbox writes to from its resume on. So a copy of that area counts only if nothing touched it meanwhile.

import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { runCommand } from "@skerry/base";
import { isAtRest, type StoredImage, storedImages } from "@skerry/node/folder";
import type { DataFolder } from "@skerry/setup/folder";
import { appendToArchive } from "./archive.ts";
import { isTouchedSince } from "./touched-since.ts";

const LONGEST_MS = 24 * 3_600_000;

export interface CopiedImages {
  readonly paused: number;
  readonly snapshots: number;
  /** Images that were used or deleted during their copy, and are not in the backup. */
  readonly left: readonly string[];
}

export interface ImageCopy {
  readonly folder: DataFolder;
  readonly archive: string;
  /** A folder on the file system of the data folder. */
  readonly staging: string;
  readonly report: (text: string) => void;
  readonly signal: AbortSignal;
}

export async function copyImages(copy: ImageCopy): Promise<CopiedImages> {
  const copiedAreas = new Set<string>();
  const left: string[] = [];
  const counts = { pause: 0, snapshot: 0 };
  const images = storedImages(copy.folder.nodeDir);
  for (const [index, image] of images.entries()) {
    copy.report(`${index + 1} of ${images.length}`);
    if (await copyImage(copy, image, copiedAreas)) counts[image.kind]++;
    else left.push(image.id);
  }
  return { paused: counts.pause, snapshots: counts.snapshot, left };
}

async function copyImage(copy: ImageCopy, image: StoredImage, copiedAreas: Set<string>): Promise<boolean> {
  const { folder, archive, signal } = copy;
  // Staged in the layout of the data folder, and archived when everything of the image is there.
  const staged = await mkdtemp(join(copy.staging, "image-"));
  const marker = join(copy.staging, "marker");
  try {
    await writeFile(marker, "");
    if (image.ownArea !== undefined && !isAtRest(folder.nodeDir, image)) return false;
    const areas = image.frozenAreas.filter((area) => !copiedAreas.has(area));
    // Memory and frozen areas do not change, so a link is enough.
    for (const path of [image.dir, ...areas]) await place(folder, staged, path, ["--link"]);
    if (image.ownArea !== undefined) {
      await place(folder, staged, image.ownArea, ["--sparse=always", "--reflink=auto"]);
      if ((await isTouchedSince(marker, image.ownArea)) || !isAtRest(folder.nodeDir, image)) return false;
    }
    await appendToArchive(archive, staged, ["node"], signal);
    for (const area of areas) copiedAreas.add(area);
    return true;
  } catch (error) {
    signal.throwIfAborted();
    // Deleted or resumed meanwhile.
    if (!storedImages(folder.nodeDir).some(({ id }) => id === image.id)) return false;
    throw error;
  } finally {
    await rm(staged, { recursive: true, force: true });
    await rm(marker, { force: true });
  }
}

async function place(folder: DataFolder, staged: string, path: string, how: readonly string[]): Promise<void> {
  const target = join(staged, relative(folder.root, path));
  await mkdir(join(target, ".."), { recursive: true });
  await runCommand("cp", ["--archive", "--one-file-system", ...how, "--no-target-directory", path, target], { timeoutMs: LONGEST_MS });
}
