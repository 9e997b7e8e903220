import { randomBytes } from "node:crypto";
import { renameSync } from "node:fs";
import { basename, join } from "node:path";
import { errnoOf } from "@skerry/base";
import type { NodePaths } from "./paths.ts";

/** Puts a directory where its files are deleted in their own time. Nothing happens when it is not there. */
export function moveToTrash(paths: NodePaths, dir: string): void {
  try {
    renameSync(dir, join(paths.trash, `${basename(dir)}-${randomBytes(4).toString("hex")}`));
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") throw error;
  }
}
