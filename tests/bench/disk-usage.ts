import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";

/** MiB below a folder, as the disk counts them: holes are free. */
export function diskMiB(dir: string): number {
  let blocks = 0;
  for (const entry of readdirSync(dir, { withFileTypes: true, recursive: true })) {
    if (entry.isFile()) blocks += statSync(join(entry.parentPath, entry.name)).blocks;
  }
  return (blocks * 512) / 1024 / 1024;
}
