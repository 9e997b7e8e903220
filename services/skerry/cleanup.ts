import { existsSync, realpathSync } from "node:fs";
import { createLogger } from "@skerry/base";
import { openLayerStore } from "@skerry/layers";
import { cleanUpNode, type NodeCleanUp } from "@skerry/node";
import { dataFolder } from "@skerry/setup/folder";
import { instanceOf, setUpRuntimes } from "./node-host.ts";

export type CleanupReport = NodeCleanUp;

const NOTHING: CleanupReport = { sandboxes: 0, slots: 0, cgroups: 0, mounts: 0, tables: 0 };

/** Removes everything that the platform of this data folder has on this host, except its data. Idempotent. Preconditions: root; no daemon runs. */
export async function cleanup(dataDir: string): Promise<CleanupReport> {
  if (!existsSync(dataFolder(dataDir).toolsFile)) return NOTHING;
  const folder = dataFolder(realpathSync(dataDir));
  return cleanUpNode(
    {
      nodeId: "clean-up",
      instance: instanceOf(folder.root),
      dir: folder.nodeDir,
      runtimes: setUpRuntimes(folder),
      layers: await openLayerStore(folder.layersDir),
      agents: { dir: "", current: { digest: "", version: "" }, command: [] },
      networkPool: undefined,
      resolvers: [],
      readySlots: 0,
      // Existing areas are recognized by what they are.
      diskLimit: "none",
      readyAreas: 0,
      pool: { size: 0, memoryBudgetBytes: 0, settleMs: 0 },
    },
    createLogger({ name: "clean-up", level: "warn", fd: 2 }),
  );
}
