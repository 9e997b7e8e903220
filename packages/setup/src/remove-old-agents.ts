import { lstat, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { DataFolder } from "./folder/data-folder.ts";

/** Trees younger than this stay: another process may be assembling one, or starting a sandbox from it. */
const YOUNGEST_MS = 3_600_000;
const TREE_NAME = /^[0-9a-f]{16}$/;
const ASIDE = "agent-old-";

/** Removes the agent trees of earlier versions, except those named in `keep` and those made within the last hour. Needs the set-up lock. */
export async function removeOldAgents(folder: DataFolder, keep: ReadonlySet<string>): Promise<void> {
  for (const name of await readdir(folder.agentDir)) {
    if (!TREE_NAME.test(name) || keep.has(name)) continue;
    const path = join(folder.agentDir, name);
    const about = await lstat(path);
    if (!about.isDirectory() || Date.now() - about.mtimeMs < YOUNGEST_MS) continue;
    // Moved first, so that an interrupted removal never leaves an incomplete tree under its name.
    await rename(path, join(folder.workDir, `${ASIDE}${name}`));
  }
  for (const name of await readdir(folder.workDir)) {
    if (name.startsWith(ASIDE)) await rm(join(folder.workDir, name), { recursive: true, force: true });
  }
}
