import { randomBytes } from "node:crypto";
import { renameSync } from "node:fs";
import { basename, join } from "node:path";
import { errnoOf } from "@skerry/base";
import type { NodePaths } from "./paths.ts";

/** Moves a directory to the trash, whose files are deleted in the background. Does nothing if the directory is gone. */
export function moveToTrash(paths: NodePaths, dir: string): void {
  try {
    renameSync(dir, join(paths.trash, `${basename(dir)}-${randomBytes(4).toString("hex")}`));
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") throw error;
  }
}
