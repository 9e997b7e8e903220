import type { Logger } from "@skerry/base";
import { type DiskAreas, openDiskAreas } from "@skerry/layers";
import type { NodeConfig } from "../config.ts";
import { nodePaths } from "../paths.ts";

/** The disk areas of a node's folder, held to their size as configured. */
export function areasOf(config: Pick<NodeConfig, "dir" | "diskLimit" | "readyAreas">, logger: Logger): DiskAreas {
  const { areas, trash } = nodePaths(config.dir);
  return openDiskAreas({
    dir: areas,
    trash,
    limit: config.diskLimit,
    ready: config.readyAreas,
    onFailure: (error) => logger.warn({ err: error }, "no disk area could be prepared"),
  });
}
