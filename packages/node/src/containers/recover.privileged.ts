// Recovers after a start of the daemon. Sandboxes that still run are adopted. Everything else of this instance without a living owner is
// released: unfinished creates and kills, states of runtimes, cgroups and mounts.

import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { asError, type Logger, mountsBelow, runCommand } from "@skerry/base";
import { type DiskAreas, unmountRootFilesystem } from "@skerry/layers";
import { destroyCgroup, destroySlot, letTrafficGo, listCgroups, listSlots } from "@skerry/runtime";
import type { ImageStore } from "../images/image-store.privileged.ts";
import type { NodePaths } from "../paths.ts";
import { readClusterRecord } from "../records/cluster-record.ts";
import type { ImageRecord } from "../records/image-record.ts";
import { readNetworkPool } from "../records/network-record.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import { commitKept, isKept, isToBeKept } from "../sandboxes/keeper.privileged.ts";
import { type HostDeps, type ReleaseDeps, release, runtimeOf } from "./host.privileged.ts";
import { areaIdsOf, type JournalEntry, readJournal, refOf, writeRecord } from "./journal.privileged.ts";
import { isSameProcess } from "./process-identity.ts";

/** Called for each thing that could not be released. The others are released. */
export type OnFailure = (error: unknown, what: string) => void;

export interface Hears {
  readonly logger: Logger;
  readonly onFailure: OnFailure;
}

export async function attempt(what: string, work: () => unknown, onFailure: OnFailure): Promise<void> {
  try {
    await work();
  } catch (error) {
    onFailure(error, what);
  }
}

export interface Remains {
  readonly sandboxes: number;
  readonly slots: number;
  readonly cgroups: number;
  readonly mounts: number;
}

export function makeNodeFolders(paths: NodePaths, dir: string): void {
  for (const path of [dir, paths.sandboxes, paths.trash]) {
    mkdirSync(path, { recursive: true });
    // Other users may pass through, as the root of a runc sandbox must, but not list the folder.
    chmodSync(path, 0o711);
  }
  // Images contain the memory of guests: only root may read them.
  mkdirSync(paths.images, { recursive: true, mode: 0o700 });
}

export interface Adopted {
  /** Sandboxes that run. */
  readonly running: readonly SandboxRecord[];
  /** Sandboxes whose snapshot was interrupted while they moved to a new area. They continue from its image. */
  readonly interrupted: readonly SandboxRecord[];
  /** Sandboxes whose resume was interrupted after the restore. They have run since, so their image is out of date. */
  readonly restored: readonly SandboxRecord[];
}

type Fate = "adopt" | "continue" | "finish" | "keep" | "release";

/**
 * Finds the recorded sandboxes that are alive, and releases the others. A sandbox is alive when its process is. Whether it answers does not
 * matter: a guest that keeps its CPUs busy may answer late, and must not be killed for that.
 */
export async function adoptSandboxes(
  deps: HostDeps,
  { images, journal }: { images: ImageStore; journal: readonly JournalEntry[] },
  { logger, onFailure }: Hears,
): Promise<Adopted> {
  await endLeftCommands(deps, onFailure);
  const running: SandboxRecord[] = [];
  const interrupted: SandboxRecord[] = [];
  const restored: SandboxRecord[] = [];
  for (const { containerId, record, fate, isDamaged } of fatesOf(deps, images, journal)) {
    const facts = { sandbox_id: record?.sandboxId, container_id: containerId, state: record?.state ?? "unrecorded" };
    // A snapshot holds the traffic before it is recorded. A hold that remains would stop the traffic of the next sandbox with this address.
    if (record && fate !== "continue") await attempt(`traffic of ${containerId}`, () => letTrafficGo(record.slot), onFailure);
    if (record && fate === "adopt") {
      logger.info(facts, "sandbox adopted");
      running.push(record.state === "running" ? record : await goneOn(deps, images, record, onFailure));
    } else if (record && fate === "continue") {
      logger.info(facts, "sandbox continues from its interrupted snapshot");
      interrupted.push(record);
    } else if (record && fate === "finish") {
      logger.info(facts, "sandbox adopted during its resume");
      restored.push(record);
    } else if (record && fate === "keep" && !(await keepEnded(images, record, { logger, onFailure }))) {
      // The end watch tries again.
      running.push({ ...record, state: "running" });
    } else {
      if (isDamaged) await attempt(`record of ${containerId}`, () => setAside(deps.paths, containerId, logger), onFailure);
      logger.info(facts, "remains of a sandbox released");
      await attempt(`sandbox ${containerId}`, () => release(deps, containerId, record?.runtime), onFailure);
    }
  }
  return { running, interrupted, restored };
}

/** Returns false when the disk could not be kept. Then nothing of the sandbox may be released. */
async function keepEnded(images: ImageStore, record: SandboxRecord, { logger, onFailure }: Hears): Promise<boolean> {
  try {
    await destroyCgroup(record.cgroupPath);
    const image = commitKept(images, record, { reason: "exited" });
    logger.warn({ sandbox_id: record.sandboxId, image_id: image.imageId }, "a sandbox ended while no daemon ran; it is paused now");
    // The image that the sandbox was resumed from is out of date.
    const { imageId: before } = record;
    if (before !== undefined && images.get(before)?.kind === "pause") images.discard(before);
    return true;
  } catch (error) {
    onFailure(error, `disk of ${record.sandboxId}`);
    return false;
  }
}

/** Moves a damaged record aside, for the operator. */
export function setAside(paths: NodePaths, containerId: string, logger: Logger): void {
  mkdirSync(paths.damaged, { recursive: true, mode: 0o700 });
  const file = join(paths.damaged, `${containerId}.json`);
  copyFileSync(paths.container(containerId).record, file);
  logger.error(
    { container_id: containerId, file },
    "the record of a sandbox can't be read: it is set aside, and no disk is deleted while it is there",
  );
}

/** Waits for the runtime commands of a former daemon, or ends them: they must not change anything during the recovery. */
async function endLeftCommands({ config }: HostDeps, onFailure: OnFailure): Promise<void> {
  for (const runtime of config.runtimes) await attempt(`commands of ${runtime.name}`, () => runtime.endLeftCommands(), onFailure);
}

/**
 * Decides what becomes of each container. A sandbox that moved to a new area for a snapshot may have two containers. One of them continues: a
 * running one if there is one, otherwise a stopped one.
 */
function fatesOf(deps: HostDeps, images: ImageStore, journal: readonly JournalEntry[]): (JournalEntry & { fate: Fate })[] {
  const fates = journal.map((entry) => ({ ...entry, fate: entry.record ? fateOf(deps, images, entry.record) : ("release" as const) }));
  const owners = new Set(fates.flatMap(({ record, fate }) => (record && (fate === "adopt" || fate === "keep") ? [record.sandboxId] : [])));
  return fates.map((entry) => {
    if (entry.fate !== "continue" || !entry.record) return entry;
    if (owners.has(entry.record.sandboxId)) return { ...entry, fate: "release" };
    owners.add(entry.record.sandboxId);
    return entry;
  });
}

function fateOf({ config, areas }: HostDeps, images: ImageStore, record: SandboxRecord): Fate {
  // It belongs to no sandbox. A ready sandbox is quickly replaced.
  if (record.sandboxId === "") return "release";
  const isAlive = isSameProcess(record.process);
  // The sandbox ended without a request: its runtime or the host crashed.
  const ended = isKept(images, record) || !isToBeKept(areas, record) ? "release" : "keep";
  const image = record.imageId === undefined ? undefined : images.get(record.imageId);
  switch (record.state) {
    case "running":
      return isAlive ? "adopt" : ended;
    // A complete image replaces the container.
    case "pausing":
      if (image) return "release";
      return isAlive ? "adopt" : ended;
    case "snapshotting":
      if (isAlive && image && isSuccessor(record, image)) return "adopt";
      if (image?.memory && runtimeOf(config, record.runtime).capabilities.checkpoint) return "continue";
      return isAlive ? "adopt" : ended;
    case "creating":
      // The sandbox was restored and has run since, so its image is out of date, also when the sandbox has ended.
      if (!record.process || !record.isRestored || image?.kind !== "pause") return "release";
      return isAlive ? "finish" : ended;
    case "pooled":
    case "killing":
      return "release";
  }
}

/** Whether the container is the one that was restored from the image. */
function isSuccessor(record: SandboxRecord, image: ImageRecord): boolean {
  return image.local.frozenAreas.length > 0 && record.frozenAreas.at(-1) === image.local.frozenAreas.at(-1);
}

/** Thaws a sandbox whose image was not finished, and records that it runs. */
async function goneOn(deps: HostDeps, images: ImageStore, record: SandboxRecord, onFailure: OnFailure): Promise<SandboxRecord> {
  const target = refOf(record);
  const image = record.imageId === undefined ? undefined : images.get(record.imageId);
  if (!image || !isSuccessor(record, image))
    await attempt(`thaw of ${record.sandboxId}`, () => runtimeOf(deps.config, record.runtime).thaw(target), onFailure);
  const { imageId: _imageId, successorArea: _successorArea, ...rest } = record;
  const running: SandboxRecord = { ...rest, state: "running" };
  // On a full disk the former record stays. It means the same.
  await attempt(`record of ${record.sandboxId}`, () => writeRecord(deps.paths, running), onFailure);
  return running;
}

/** Reads all records before anything is changed. Throws PlatformError("record_unreadable") after releasing the lock. */
export function readRecords(paths: NodePaths, images: ImageStore, lock: { release(): void }): JournalEntry[] {
  try {
    readClusterRecord(paths.cluster);
    readNetworkPool(paths.network);
    const journal = readJournal(paths);
    images.load();
    return journal;
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** Whether there are damaged records, from this start or an earlier one. */
export function hasSetAside(paths: NodePaths): boolean {
  return existsSync(paths.damaged) && readdirSync(paths.damaged).length > 0;
}

/** Deletes areas that no container and no image refers to. Deletes none while there are damaged records, which may refer to them. */
export async function removeStrayAreas(
  areas: DiskAreas,
  images: ImageStore,
  { keep, hasSetAside, onFailure }: { keep: readonly SandboxRecord[]; hasSetAside: boolean; onFailure: OnFailure },
): Promise<void> {
  if (images.damaged.size > 0 || hasSetAside) return;
  const used = new Set([...keep, ...images.list().map(({ local }) => local)].flatMap(areaIdsOf));
  for (const area of areas.list()) {
    if (!used.has(area)) await attempt(`area ${area}`, () => areas.destroy(area), onFailure);
  }
}

/** Removes everything of the instance that no container of `keep` holds. Returns what it found. */
export async function removeRemains(deps: ReleaseDeps, keep: readonly SandboxRecord[], { logger, onFailure }: Hears): Promise<Remains> {
  const { config, paths, names } = deps;
  const kept = new Set(keep.map((record) => record.containerId));
  const keptSlots = new Set(keep.map((record) => record.slot.number));
  let sandboxes = 0;
  for (const runtime of config.runtimes) {
    for (const id of await runtime.list()) {
      if (kept.has(id)) continue;
      sandboxes += 1;
      await attempt(`sandbox ${id}`, () => release(deps, id, runtime.name), onFailure);
    }
  }
  const cgroups = listCgroups(`/skerry-${config.instance}`).filter((id) => !kept.has(id));
  for (const id of cgroups) await attempt(`cgroup of ${id}`, () => destroyCgroup(`/skerry-${config.instance}/${id}`), onFailure);
  const keptDirs = keep.map((record) => `${paths.container(record.containerId).dir}/`);
  const mounts = [...mountsBelow(paths.sandboxes), ...mountsBelow(paths.trash)].filter(
    (path) => !keptDirs.some((dir) => path.startsWith(dir)),
  );
  for (const path of mounts) await attempt(`mount ${path}`, () => unmountRootFilesystem(path), onFailure);
  const slots = listSlots({ names, usernsDir: paths.userns }).filter((number) => !keptSlots.has(number));
  for (const number of slots) await attempt(`slot ${number}`, () => destroySlot({ number, names, usernsDir: paths.userns }), onFailure);
  const remains = { sandboxes, slots: slots.length, cgroups: cgroups.length, mounts: mounts.length };
  logger.info({ ...remains, kept: kept.size }, "remains removed");
  return remains;
}

const MAX_AT_ONCE = 100;
const DELETE_TIMEOUT_MS = 3_600_000;

/**
 * Deletes the files of ended sandboxes in a separate process: guests may make millions of files, and paths of any depth. Never throws.
 * Files that could not be deleted are tried again after the next kill and at the next start.
 */
export async function emptyTrash(paths: NodePaths, logger: Logger): Promise<void> {
  try {
    const names = readdirSync(paths.trash);
    // A mount below would be deleted with the rest: perhaps a layer that other sandboxes use.
    const mounted = mountsBelow(paths.trash);
    const entries = names.map((name) => join(paths.trash, name)).filter((path) => !mounted.some((mount) => mount.startsWith(`${path}/`)));
    for (let first = 0; first < entries.length; first += MAX_AT_ONCE) {
      await runCommand("nice", ["rm", "-rf", "--one-file-system", "--", ...entries.slice(first, first + MAX_AT_ONCE)], {
        timeoutMs: DELETE_TIMEOUT_MS,
      });
    }
    for (const path of mounted) unmountRootFilesystem(path);
  } catch (error) {
    logger.warn({ err: asError(error) }, "deleting the files of ended sandboxes failed");
  }
}
