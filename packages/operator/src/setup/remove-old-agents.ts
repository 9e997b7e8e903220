import { lstat, readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { DataFolder } from "../data-folder.ts";
import { readJsonFile } from "../json-file.ts";
import { OperatorError } from "../operator-error.ts";

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

/** Asks the configurations of the sandboxes: their mounts are in namespaces of their own. */
async function treesInUse(folder: DataFolder): Promise<ReadonlySet<string>> {
  const used = new Set<string>();
  const sandboxes = join(folder.root, "node/sandboxes");
  for (const id of await namesIn(sandboxes)) {
    const config = await readConfig(join(sandboxes, id, "bundle/config.json"));
    for (const { source } of config?.mounts ?? []) {
      if (source !== undefined && dirname(source) === folder.agentDir) used.add(basename(source));
    }
  }
  return used;
}

/** Undefined also for one whose writing was cut off: no sandbox was started from it. */
async function readConfig(path: string): Promise<{ readonly mounts?: readonly { readonly source?: string }[] } | undefined> {
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
