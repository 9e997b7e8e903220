import { assembleAgent } from "@skerry/agent/assemble";
import type { DataFolder } from "./folder/data-folder.ts";
import { readJsonFile, writeJsonFile } from "./folder/json-file.ts";

/** agent/current.json: the tree in agent/ that new sandboxes use. Older trees stay as long as a sandbox uses them. */
export interface CurrentAgent {
  readonly digest: string;
  readonly version: string;
}

export async function ensureAgent(folder: DataFolder): Promise<CurrentAgent & { changed: boolean }> {
  const before = await readJsonFile<CurrentAgent>(folder.agentFile);
  const { digest, version } = await assembleAgent({ outDir: folder.agentDir, workDir: folder.workDir });
  const changed = before?.digest !== digest || before.version !== version;
  if (changed) await writeJsonFile(folder.agentFile, { digest, version });
  return { digest, version, changed };
}
