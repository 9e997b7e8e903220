import { access } from "node:fs/promises";
import type { DataFolder } from "./folder/data-folder.ts";
import { readJsonFile, writeJsonFile } from "./folder/json-file.ts";
import type { RunscBinary } from "./runsc/sources.ts";

/** tools.json: the programs that run sandboxes. */
export interface Tools {
  readonly runsc?: { readonly path: string; readonly version: string; readonly sha512: string; readonly source: string };
  readonly runc?: { readonly path: string };
}

export const readTools = (folder: DataFolder) => readJsonFile<Tools>(folder.toolsFile);

export async function recordTools(folder: DataFolder, runsc: RunscBinary | undefined): Promise<Tools> {
  const before = await readTools(folder);
  const runcPath = await firstExecutable(["/usr/sbin/runc", "/usr/bin/runc", "/usr/local/sbin/runc", "/usr/local/bin/runc"]);
  const tools: Tools = {
    // Keeps the original source: a binary that is already present has the source "data folder".
    ...(runsc && { runsc: before?.runsc?.sha512 === runsc.sha512 ? { ...before.runsc, path: runsc.path } : runsc }),
    ...(!runsc && before?.runsc && { runsc: before.runsc }),
    ...(runcPath !== undefined && { runc: { path: runcPath } }),
  };
  if (JSON.stringify(tools) !== JSON.stringify(before)) await writeJsonFile(folder.toolsFile, tools);
  return tools;
}

async function firstExecutable(paths: readonly string[]): Promise<string | undefined> {
  for (const path of paths) {
    const found = await access(path).then(
      () => true,
      () => false,
    );
    if (found) return path;
  }
  return undefined;
}
