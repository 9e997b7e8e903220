// Volumes are copied while sandboxes use them. A disk file that nothing writes to during its copy has what a sudden end of the machine would
// leave: the journal of its file system makes it whole when it is mounted. So a copy counts only if nothing touched the disk file meanwhile.

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { runCommand } from "@skerry/base";
import { copiedVolumesIn, makeVolumePlace, type StoredVolume, storedVolumes } from "@skerry/node/folder";
import { appendToArchive } from "./archive.ts";
import type { ImageCopy } from "./copy-images.ts";
import { isTouchedSince } from "./touched-since.ts";

const LONGEST_MS = 24 * 3_600_000;
/** How often a volume that is being written to is tried. */
const TRIES = 5;
const PAUSE_MS = 1_000;

export interface CopiedVolumes {
  readonly copied: number;
  /** Volumes that were written to during every copy, and are not in the backup. */
  readonly left: readonly string[];
}

export async function copyVolumes(copy: ImageCopy): Promise<CopiedVolumes> {
  const { folder, report } = copy;
  const volumes = storedVolumes(folder.nodeDir);
  const left: string[] = [];
  let copied = 0;
  for (const [index, volume] of volumes.entries()) {
    report(`${index + 1} of ${volumes.length}`);
    const outcome = await copyVolume(copy, volume);
    if (outcome === "copied") copied++;
    else if (outcome === "in_use") left.push(volume.id);
  }
  return { copied, left };
}

async function copyVolume(copy: ImageCopy, volume: StoredVolume): Promise<"copied" | "in_use" | "deleted"> {
  for (let tried = 1; ; tried++) {
    try {
      if (await tryToCopy(copy, volume)) return "copied";
    } catch (error) {
      copy.signal.throwIfAborted();
      if (!storedVolumes(copy.folder.nodeDir).some(({ id }) => id === volume.id)) return "deleted";
      throw error;
    }
    if (tried === TRIES) return "in_use";
    await sleep(PAUSE_MS, undefined, { signal: copy.signal });
  }
}

async function tryToCopy({ folder, archive, staging, signal }: ImageCopy, volume: StoredVolume): Promise<boolean> {
  const staged = await mkdtemp(join(staging, "volume-"));
  const marker = join(staging, "marker");
  try {
    // In the layout of the data folder, wherever the node keeps its volumes.
    const target = makeVolumePlace(join(staged, relative(folder.root, copiedVolumesIn(folder.nodeDir))), volume.id);
    // What is written but not yet on the disk would touch the disk file soon.
    if (volume.mountPoint !== undefined) await runCommand("sync", ["--file-system", volume.mountPoint], { timeoutMs: LONGEST_MS, signal });
    await writeFile(marker, "");
    const options = ["--archive", "--sparse=always", "--reflink=auto", `--target-directory=${target}`];
    await runCommand("cp", [...options, volume.record, volume.diskFile], { timeoutMs: LONGEST_MS, signal });
    if (await isTouchedSince(marker, volume.diskFile)) return false;
    await appendToArchive(archive, staged, ["node"], signal);
    return true;
  } finally {
    await rm(staged, { recursive: true, force: true });
    await rm(marker, { force: true });
  }
}
