import { lstat, readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { DataFolder } from "./folder/data-folder.ts";
import { readJsonFile } from "./folder/json-file.ts";
import { OperatorError } from "./operator-error.ts";

const YOUNGEST_MS = 3_600_000;
const TREE_NAME = /^[0-9a-f]{16}$/;
const ASIDE = "agent-old-";

/**
 * Removes agent trees of earlier versions: not those named in `keep`, none that a sandbox has mounted, and none made within
 * the hour, by whomever. Needs the set-up lock.
 */
export async function removeOldAgents(folder: DataFolder, keep: ReadonlySet<string>): Promise<void> {
  const used = await treesInUse(folder);
  for (const name of await readdir(folder.agentDir)) {
    if (!TREE_NAME.test(name) || keep.has(name) || used.has(name)) continue;
    const path = join(folder.agentDir, name);
    const about = await lstat(path);
    if (!about.isDirectory() || Date.now() - about.mtimeMs < YOUNGEST_MS) continue;
    // Aside first: a tree whose removal is cut off must not pass for a whole one.
    await rename(path, join(folder.workDir, `${ASIDE}${name}`));
  }
  for (const name of await readdir(folder.workDir)) {
    if (name.startsWith(ASIDE)) await rm(join(folder.workDir, name), { recursive: true, force: true });
  }
}

/**
 * Asks the records of the sandboxes and of the images: mounts are in namespaces of their own, and processes in an image have
 * the files of their agent open.
 */
async function treesInUse(folder: DataFolder): Promise<ReadonlySet<string>> {
  const used = new Set<string>();
  for (const [kind, file] of [
    ["sandboxes", "sandbox.json"],
    ["images", "image.json"],
  ] as const) {
    const dir = join(folder.root, "node", kind);
    for (const id of await namesIn(dir)) {
      const agentDir = (await readRecord(join(dir, id, file)))?.agentDir;
      if (agentDir !== undefined && dirname(agentDir) === folder.agentDir) used.add(basename(agentDir));
    }
  }
  return used;
}

/** Undefined also for one whose writing was cut off: no sandbox was started from it. */
async function readRecord(path: string): Promise<{ readonly agentDir?: string } | undefined> {
  try {
    return await readJsonFile(path);
  } catch (error) {
    if (error instanceof OperatorError) return undefined;
    throw error;
  }
}

async function namesIn(path: string): Promise<readonly string[]> {
  try {
    return await readdir(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}
