// Folders of tests that have something running. Each names its owner, and what runs for it has the folder's name in its environment
// as SKERRY_DATA: so the next run finds what a killed one has left, and ends it.

import { randomBytes } from "node:crypto";
import { chmodSync, copyFileSync, mkdirSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { writeProcessRecord } from "@skerry/setup/folder";
import { testCacheDir } from "./test-cache.ts";

/** Answers with its real path. Preconditions: root. */
export async function createRunFolder(prefix: string): Promise<string> {
  const dir = join(testCacheDir(), "runs", `${prefix}-${randomBytes(6).toString("hex")}`);
  mkdirSync(dir, { recursive: true });
  // Other users' processes have to pass through to what is theirs in it.
  chmodSync(dir, 0o711);
  await writeProcessRecord(join(dir, "owner.json"), process.pid);
  return realpathSync(dir);
}

/**
 * For one node without a platform around it, laid out like a platform's data folder. The node's own folder is to be `node` in it;
 * everything on the host is named by `instanceOf` of it.
 */
export async function createTestNodeFolder(): Promise<string> {
  const dir = await createRunFolder("n");
  copyFileSync(join(testCacheDir(), "tools.json"), join(dir, "tools.json"));
  return dir;
}
