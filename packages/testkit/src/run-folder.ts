// Creates folders for tests that start processes. Each folder names its owner, and the processes have its path in their environment
// (SKERRY_DATA). So the next run finds and ends what a killed run left behind.

import { randomBytes } from "node:crypto";
import { chmodSync, copyFileSync, mkdirSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { writeProcessRecord } from "@skerry/setup/folder";
import { testCacheDir } from "./test-cache.ts";

/** Creates a folder, and returns its real path. Preconditions: root. */
export async function createRunFolder(prefix: string): Promise<string> {
  const dir = join(testCacheDir(), "runs", `${prefix}-${randomBytes(6).toString("hex")}`);
  mkdirSync(dir, { recursive: true });
  // Processes of other users must be able to reach their own folders in it.
  chmodSync(dir, 0o711);
  await writeProcessRecord(join(dir, "owner.json"), process.pid);
  return realpathSync(dir);
}

/**
 * Creates a data folder for a node without a platform. The folder of the node must be `node` in it, and the names of all resources on the
 * host contain its `instanceOf`.
 */
export async function createTestNodeFolder(): Promise<string> {
  const dir = await createRunFolder("n");
  copyFileSync(join(testCacheDir(), "tools.json"), join(dir, "tools.json"));
  return dir;
}
