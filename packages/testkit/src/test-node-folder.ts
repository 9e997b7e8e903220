// A folder for one node without a platform around it. It is laid out like a platform's data folder and names its owner as those of
// tests do, so that what a killed run has left of it is found and swept away too.

import { randomBytes } from "node:crypto";
import { chmodSync, copyFileSync, mkdirSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { writeProcessRecord } from "@skerry/operator/setup";
import { testCacheDir } from "./test-cache.ts";

/** Its real path. The node's own folder is to be `node` in it; everything on the host is named by `instanceOf` of it. */
export async function createTestNodeFolder(): Promise<string> {
  const dir = join(testCacheDir(), "runs", `n-${randomBytes(6).toString("hex")}`);
  mkdirSync(dir, { recursive: true });
  // A runc sandbox's own root has to pass through to its root file system.
  chmodSync(dir, 0o711);
  await writeProcessRecord(join(dir, "owner.json"), process.pid);
  copyFileSync(join(testCacheDir(), "tools.json"), join(dir, "tools.json"));
  return realpathSync(dir);
}
