import { existsSync, rmSync } from "node:fs";
import type { Logger } from "@skerry/base";
import { destroyCgroup, networkNames, removeFirewall } from "@skerry/runtime";
import type { NodeConfig } from "./config.ts";
import { lockInstance } from "./instance-lock.privileged.ts";
import { nodePaths } from "./paths.ts";
import { release } from "./sandboxes/host.privileged.ts";
import { readJournal } from "./sandboxes/journal.privileged.ts";
import { emptyTrash, makeNodeFolders, removeRemains } from "./sandboxes/recover.privileged.ts";

/** Counts of what was found and removed. */
export interface NodeCleanUp {
  readonly sandboxes: number;
  readonly slots: number;
  readonly cgroups: number;
  readonly mounts: number;
  readonly tables: number;
}

/**
 * Ends every sandbox of this node and removes everything of its instance from the host. Preconditions: root. Throws
 * PlatformError("already_running") while its daemon runs. Idempotent.
 */
export async function cleanUpNode(config: NodeConfig, logger: Logger): Promise<NodeCleanUp> {
  const paths = nodePaths(config.dir);
  const names = networkNames(config.instance);
  const deps = { config, paths, names };
  const hadFolders = existsSync(config.dir);
  if (hadFolders) makeNodeFolders(paths, config.dir);
  const lock = hadFolders ? lockInstance(config.dir) : undefined;
  const entries = hadFolders ? readJournal(paths) : [];
  for (const { sandboxId, record } of entries) await release(deps, sandboxId, record?.runtime);
  const remains = await removeRemains(deps, [], logger);
  for (const runtime of config.runtimes) await runtime.cleanUp();
  const tables = (await removeFirewall(names)) ? 1 : 0;
  await destroyCgroup(`/skerry-${config.instance}`);
  if (hadFolders) await emptyTrash(paths, logger);
  lock?.release();
  rmSync(paths.userns, { recursive: true, force: true });
  return { ...remains, sandboxes: remains.sandboxes + entries.length, tables };
}
