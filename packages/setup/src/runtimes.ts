// What a node's configuration takes from a data folder: its runtimes, and its name on the host.

import { createHash } from "node:crypto";
import { readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { asError, PlatformError } from "@skerry/base";
import { createRuncRuntime, createRunscRuntime, type Runtime, readHostFacts } from "@skerry/runtime";
import type { DataFolder } from "./folder/data-folder.ts";
import type { Tools } from "./tools.ts";

/** The id of a node on its host: a part of every name that it creates there. Derived from the path of the folder that it belongs to. */
export function instanceOf(dir: string): string {
  return createHash("sha256").update(realpathSync(dir)).digest("hex").slice(0, 4);
}

/** The runtimes in the data folder's tools.json. `nodeDir` is the folder of the node that uses them. Throws PlatformError("config_invalid"). */
export function setUpRuntimes(folder: DataFolder, nodeDir = folder.nodeDir): Runtime[] {
  const tools = readSetUpFile<Tools>(folder.toolsFile);
  const host = readHostFacts();
  const stateDir = (name: string) => join(nodeDir, name);
  return [
    ...(tools.runsc ? [createRunscRuntime({ binary: tools.runsc.path, stateDir: stateDir("runsc"), host })] : []),
    ...(tools.runc ? [createRuncRuntime({ binary: tools.runc.path, stateDir: stateDir("runc"), host })] : []),
  ];
}

/** A file that the set-up of this host has written. Throws PlatformError("config_invalid"). */
export function readSetUpFile<T>(file: string): T {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as T;
  } catch (error) {
    throw new PlatformError("config_invalid", `${file} can't be read: run ./skerry up to set up this host`, { cause: asError(error) });
  }
}
