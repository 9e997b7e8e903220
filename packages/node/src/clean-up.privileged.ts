import { existsSync, rmSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { asError, type Logger } from "@skerry/base";
import { destroyCgroup, letTrafficGo, networkNames, removeFirewall } from "@skerry/runtime";
import { areasOf } from "./areas/disk-areas.privileged.ts";
import type { NodeConfig } from "./config.ts";
import { release } from "./containers/host.privileged.ts";
import {
  attempt,
  emptyTrash,
  hasSetAside,
  makeNodeFolders,
  type OnFailure,
  readRecords,
  removeRemains,
  removeStrayAreas,
  setAside,
} from "./containers/recover.privileged.ts";
import { readDiskSpace } from "./disk/disk-space.privileged.ts";
import { ImageStore } from "./images/image-store.privileged.ts";
import { lockInstance } from "./instance-lock.privileged.ts";
import { nodePaths } from "./paths.ts";
import { volumesOfLastStart } from "./volumes/sandbox-volumes.privileged.ts";

/** Numbers of resources that were found and removed. */
export interface NodeCleanUp {
  readonly sandboxes: number;
  readonly slots: number;
  readonly cgroups: number;
  readonly mounts: number;
  readonly tables: number;
}

/**
 * Kills every sandbox of this node and removes everything of its instance from the host. Idempotent. Preconditions: root.
 * Throws PlatformError("already_running") while the daemon runs, and PlatformError("record_unreadable") as a start does. Throws an
 * AggregateError after it has tried every step, if some of them failed.
 */
export async function cleanUpNode(config: NodeConfig, logger: Logger): Promise<NodeCleanUp> {
  const paths = nodePaths(config.dir);
  const names = networkNames(config.instance);
  const deps = { config, paths, names };
  const images = new ImageStore(paths);
  const hadFolders = existsSync(config.dir);
  if (hadFolders) makeNodeFolders(paths, config.dir);
  const lock = hadFolders ? lockInstance(config.dir) : undefined;
  const entries = lock ? readRecords(paths, images, lock) : [];
  const failures: Error[] = [];
  const onFailure: OnFailure = (error, what) => failures.push(new Error(`${what}: ${asError(error).message}`, { cause: error }));
  for (const runtime of config.runtimes) await attempt(`commands of ${runtime.name}`, () => runtime.endLeftCommands(), onFailure);
  for (const { record } of entries)
    if (record) await attempt(`traffic of ${record.containerId}`, () => letTrafficGo(record.slot), onFailure);
  for (const { containerId, isDamaged } of entries)
    if (isDamaged) await attempt(`record of ${containerId}`, () => setAside(paths, containerId, logger), onFailure);
  for (const { containerId, record } of entries)
    await attempt(`sandbox ${containerId}`, () => release(deps, containerId, record?.runtime), onFailure);
  const remains = await removeRemains(deps, [], { logger, onFailure });
  if (hadFolders) {
    // Paused sandboxes and snapshots are data, and stay.
    const areas = areasOf(config, logger);
    await removeStrayAreas(areas, images, { keep: [], hasSetAside: hasSetAside(paths), onFailure });
    await emptyTrash(paths, logger);
    await untilRoom(config.dir);
    for (const area of areas.list()) await attempt(`area ${area}`, () => areas.close(area), onFailure);
  }
  await attempt("volumes", () => volumesOfLastStart(config, logger).unmountAll(), onFailure);
  for (const runtime of config.runtimes) await attempt(`what ${runtime.name} keeps`, () => runtime.cleanUp(), onFailure);
  let tables = 0;
  await attempt(
    "firewall",
    async () => {
      tables = (await removeFirewall(names)) ? 1 : 0;
    },
    onFailure,
  );
  await attempt("cgroup", () => destroyCgroup(`/skerry-${config.instance}`), onFailure);
  lock?.release();
  await attempt("pinned namespaces", () => rmSync(paths.userns, { recursive: true, force: true }), onFailure);
  if (failures.length > 0) {
    const list = failures.map(({ message }) => message).join("\n  ");
    throw new AggregateError(failures, `some resources could not be removed, and all others were:\n  ${list}`);
  }
  return { ...remains, sandboxes: remains.sandboxes + entries.length, tables };
}

/** Free space for data of just paused sandboxes that the kernel has not written to disk yet. */
const ROOM_BYTES = 32 * 1024 * 1024;
const ROOM_WAIT_MS = 3_000;

/** The kernel frees the blocks of deleted areas with a delay. On a full disk, data that it writes before that is lost. */
async function untilRoom(dir: string): Promise<void> {
  const deadline = performance.now() + ROOM_WAIT_MS;
  while (readDiskSpace(dir).freeBytes < ROOM_BYTES && performance.now() < deadline) await sleep(50);
}
