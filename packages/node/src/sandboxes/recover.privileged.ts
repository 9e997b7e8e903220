// After a start: what a former daemon left. Sandboxes that still run and answer are adopted; everything else of this
// instance that has no living owner is given back: half-made and half-killed sandboxes, runtime states, cgroups, mounts.

import { chmodSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { asError, type Logger, runCommand } from "@skerry/base";
import { type DiskAreas, unmountRootFilesystem } from "@skerry/layers";
import { destroyCgroup, destroySlot, listCgroups, listSlots } from "@skerry/runtime";
import type { ImageStore } from "../images/image-store.privileged.ts";
import type { NodePaths } from "../paths.ts";
import { type HostDeps, type ReleaseDeps, release, runtimeOf } from "./host.privileged.ts";
import { readJournal, type SandboxRecord, writeRecord } from "./journal.privileged.ts";
import { isSameProcess } from "./process-identity.ts";

/** Hears of each thing that could not be given back; the others are. */
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
    // Others may pass through (a runc sandbox's own root has to) but not look around.
    chmodSync(path, 0o711);
  }
  // Memory of guests: nobody's but ours.
  mkdirSync(paths.images, { recursive: true, mode: 0o700 });
}

export interface Adopted {
  /** Sandboxes that run. */
  readonly running: readonly SandboxRecord[];
  /** Those that were being moved onto a new disk for a snapshot: they go on from its image. */
  readonly interrupted: readonly SandboxRecord[];
}

/**
 * Which recorded sandboxes are still alive; the others are released here. Its process is what counts: a guest that keeps
 * its processors busy answers nobody in time, and must not lose its work for that.
 */
export async function adoptSandboxes(deps: HostDeps, images: ImageStore, { logger, onFailure }: Hears): Promise<Adopted> {
  const running: SandboxRecord[] = [];
  const interrupted = new Map<string, SandboxRecord>();
  for (const { containerId, record } of readJournal(deps.paths)) {
    const facts = { sandbox_id: record?.sandboxId, container_id: containerId, state: record?.state ?? "unrecorded" };
    const fate = record ? fateOf(deps, images, record) : "release";
    if (record && fate === "adopt") {
      logger.info(facts, "sandbox adopted");
      running.push(record.state === "running" ? record : await thawed(deps, record, { logger, onFailure }));
    } else if (record && fate === "continue" && !interrupted.has(record.sandboxId)) {
      logger.info(facts, "sandbox goes on from the snapshot that was being taken of it");
      interrupted.set(record.sandboxId, record);
    } else {
      logger.info(facts, "remains of a sandbox released");
      await attempt(`sandbox ${containerId}`, () => release(deps, containerId, record?.runtime), onFailure);
    }
  }
  return { running, interrupted: [...interrupted.values()] };
}

function fateOf({ config }: HostDeps, images: ImageStore, record: SandboxRecord): "adopt" | "continue" | "release" {
  // Nobody's: it is made again in no time.
  if (record.sandboxId === "") return "release";
  const isAlive = isSameProcess(record.process);
  const image = record.imageId === undefined ? undefined : images.get(record.imageId);
  switch (record.state) {
    case "running":
      return isAlive ? "adopt" : "release";
    // Once its image is complete, the image is the sandbox.
    case "pausing":
      return image || !isAlive ? "release" : "adopt";
    case "snapshotting":
      if (image?.memory && runtimeOf(config, record.runtime).capabilities.checkpoint) return "continue";
      return isAlive ? "adopt" : "release";
    case "creating":
    case "pooled":
    case "killing":
      return "release";
  }
}

/** One whose image was not finished: it stands still, or was never stopped. */
async function thawed(deps: HostDeps, record: SandboxRecord, { onFailure }: Hears): Promise<SandboxRecord> {
  const target = { id: record.containerId, ...(record.binary === undefined ? {} : { binary: record.binary }) };
  await attempt(`thaw of ${record.sandboxId}`, () => runtimeOf(deps.config, record.runtime).thaw(target), onFailure);
  const { imageId: _imageId, ...rest } = record;
  const running: SandboxRecord = { ...rest, state: "running" };
  writeRecord(deps.paths, running);
  return running;
}

/** Areas that neither a container nor an image refers to. */
export async function removeStrayAreas(
  areas: DiskAreas,
  images: ImageStore,
  { keep, onFailure }: { keep: readonly SandboxRecord[]; onFailure: OnFailure },
): Promise<void> {
  const used = new Set(
    [...keep, ...images.list()].flatMap(({ area, frozenAreas }) => [...(area === undefined ? [] : [area]), ...frozenAreas]),
  );
  for (const area of areas.list()) {
    if (!used.has(area)) await attempt(`area ${area}`, () => areas.destroy(area), onFailure);
  }
}

/** Removes everything of the instance that none of `keep` holds. Counts what it found. */
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
 * Deletes files of ended sandboxes, in a process of its own: guests make millions of files and trees deeper than any path.
 * A failure is logged; what stays is tried again after the next kill and at the next start. Never throws.
 */
export async function emptyTrash(paths: NodePaths, logger: Logger): Promise<void> {
  try {
    const names = readdirSync(paths.trash);
    // Whatever is still mounted below would be emptied with the rest: a layer that others use, perhaps.
    const mounted = mountsBelow(paths.trash);
    const entries = names.map((name) => join(paths.trash, name)).filter((path) => !mounted.some((mount) => mount.startsWith(`${path}/`)));
    for (let first = 0; first < entries.length; first += MAX_AT_ONCE) {
      await runCommand("nice", ["rm", "-rf", "--one-file-system", "--", ...entries.slice(first, first + MAX_AT_ONCE)], {
        timeoutMs: DELETE_TIMEOUT_MS,
      });
    }
    for (const path of mounted) unmountRootFilesystem(path);
  } catch (error) {
    logger.warn({ err: asError(error) }, "files of ended sandboxes could not be deleted");
  }
}

function mountsBelow(dir: string): string[] {
  return readFileSync("/proc/self/mounts", "utf8")
    .split("\n")
    .map((line) => (line.split(" ")[1] ?? "").replace(/\\(\d{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8))))
    .filter((path) => path.startsWith(`${dir}/`));
}
