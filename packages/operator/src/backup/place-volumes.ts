import { existsSync } from "node:fs";
import { readdir, rm, stat } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import { runCommand } from "@skerry/base";
import { copiedVolumesIn } from "@skerry/node/folder";
import { type DataFolder, OperatorError } from "@skerry/setup/folder";

const LONGEST_MS = 24 * 3_600_000;

/** Moves the volumes of a backup to the folder of `SKERRY_VOLUMES`, which may contain others, but none of them. */
export async function placeVolumes(folder: DataFolder, target: string, signal: AbortSignal): Promise<number> {
  if (!isAbsolute(target) || !(await stat(target).catch(() => undefined))?.isDirectory()) {
    throw new OperatorError(`SKERRY_VOLUMES must be the absolute path of a directory, and ${target} is none`);
  }
  const from = copiedVolumesIn(folder.nodeDir);
  const ids = existsSync(from) ? await readdir(from) : [];
  const taken = ids.find((id) => existsSync(join(target, id)));
  if (taken !== undefined) {
    throw new OperatorError(`${target} has the volume ${taken} already`, { hints: ["Set SKERRY_VOLUMES to an empty folder."] });
  }
  const placed: string[] = [];
  try {
    for (const id of ids) {
      placed.push(join(target, id));
      const paths = [join(from, id), join(target, id)];
      await runCommand("cp", ["--archive", "--sparse=always", "--reflink=auto", "--no-target-directory", ...paths], {
        timeoutMs: LONGEST_MS,
        signal,
      });
    }
  } catch (error) {
    for (const path of placed) await rm(path, { recursive: true, force: true });
    throw error;
  }
  await rm(from, { recursive: true, force: true });
  return ids.length;
}
