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
 * PlatformError("already_running") while its daemon runs, and one
 * AggregateError after everything was tried when some of it could not be removed. Idempotent.
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
    // Paused sandboxes and snapshots are data: they stay.
    const areas = areasOf(config, logger);
    await removeStrayAreas(areas, images, { keep: [], hasSetAside: hasSetAside(paths), onFailure });
    await emptyTrash(paths, logger);
    await untilRoom(config.dir);
    for (const area of areas.list()) await attempt(`area ${area}`, () => areas.close(area), onFailure);
  }
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
    throw new AggregateError(failures, `some of it could not be removed; the rest was:\n  ${list}`);
  }
  return { ...remains, sandboxes: remains.sandboxes + entries.length, tables };
}

/** Enough for what sandboxes that were paused a moment ago have not on the disk yet. */
const ROOM_BYTES = 32 * 1024 * 1024;
const ROOM_WAIT_MS = 3_000;

/** The kernel gives back what deleted areas had a moment after they are gone. On a full disk, what is written too early is lost. */
async function untilRoom(dir: string): Promise<void> {
  const deadline = performance.now() + ROOM_WAIT_MS;
  while (readDiskSpace(dir).freeBytes < ROOM_BYTES && performance.now() < deadline) await sleep(50);
}
