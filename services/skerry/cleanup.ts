import { existsSync, realpathSync } from "node:fs";
import { createLogger } from "@skerry/base";
import { openLayerStore } from "@skerry/layers";
import { cleanUpNode, type NodeCleanUp } from "@skerry/node";
import { idleNodeConfig, removeBuildNodes } from "@skerry/setup/build-node";
import { dataFolder } from "@skerry/setup/folder";
import { instanceOf, setUpRuntimes } from "@skerry/setup/runtimes";

export type CleanupReport = NodeCleanUp;

const NOTHING: CleanupReport = { sandboxes: 0, slots: 0, cgroups: 0, mounts: 0, tables: 0 };

/** Removes everything that the platform of this data folder has on this host, except its data. Idempotent. Preconditions: root; no daemon runs. */
export async function cleanup(dataDir: string): Promise<CleanupReport> {
  if (!existsSync(dataFolder(dataDir).toolsFile)) return NOTHING;
  const folder = dataFolder(realpathSync(dataDir));
  // Left by a set-up that was killed while it built the base template.
  await removeBuildNodes(folder);
  const layers = await openLayerStore(folder.layersDir);
  return cleanUpNode(
    idleNodeConfig({ dir: folder.nodeDir, instance: instanceOf(folder.root), layers, runtimes: setUpRuntimes(folder) }),
    createLogger({ name: "clean-up", level: "warn", fd: 2 }),
  );
}
