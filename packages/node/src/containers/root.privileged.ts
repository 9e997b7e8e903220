// Mounts the layers, the frozen areas and the own area of a sandbox as one tree. Also for a paused sandbox, whose area must be completed
// before it becomes a layer of others.

import { closeSync, mkdirSync, openSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { errnoOf, type Logger, PlatformError } from "@skerry/base";
import {
  type HardLinks,
  hasSplitLinks,
  linkUp,
  mountRootFilesystem,
  parseLayerDigest,
  type RootMount,
  removeRootFilesystem,
} from "@skerry/layers";
import { openUserNamespace } from "@skerry/runtime";
import { crashPoint } from "../crash-points.ts";
import type { ImageRecord } from "../records/image-record.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import { moveToTrash } from "../trash.privileged.ts";
import type { HostDeps } from "./host.privileged.ts";

/** 5 s in all: on a busy machine, a process that is just starting holds its copy of a mount for longer than a moment. */
const ATTEMPTS = 100;
const RELEASE_PAUSE_MS = 50;

type Made = Pick<SandboxRecord, "layers" | "frozenAreas" | "area">;

export async function mountRoot(deps: HostDeps, record: SandboxRecord, target: string): Promise<void> {
  const { userNamespace } = record.slot;
  await mountMade(deps, record, { target, usernsFd: userNamespace && openSync(userNamespace.path, "r") });
}

/** Completes the hard links in the area of a frozen sandbox, before it becomes a layer. Throws PlatformError("links_not_kept"). */
export async function linkUpArea(deps: HostDeps, record: SandboxRecord): Promise<void> {
  await linkUp(await rootOf(deps, record, deps.paths.container(record.containerId).root));
}

/**
 * The same for a paused sandbox. It is mounted for this in the folder of a container that does not exist, where the next start finds the
 * remains of a crash.
 */
export async function linkUpPaused(deps: HostDeps, { layers, local }: ImageRecord, containerId: string): Promise<void> {
  const { areas, paths } = deps;
  const { area = "", frozenAreas, owner } = local;
  const made: Made = { layers, frozenAreas, area };
  await areas.open(area);
  if (!(await hasSplitLinks(areas.paths(area).work))) return;
  for (const frozen of frozenAreas) await areas.open(frozen, { readOnly: true });
  const own = paths.container(containerId);
  for (const dir of [own.dir, own.root]) mkdirSync(dir, { mode: 0o700 });
  try {
    await mountMade(deps, made, { target: own.root, usernsFd: owner && (await openUserNamespace(owner.idBase)) });
    crashPoint("share.root-mounted");
    await linkUp(await rootOf(deps, made, own.root));
  } finally {
    removeRootFilesystem(own.root);
    moveToTrash(paths, own.dir);
  }
}

async function rootOf({ config, areas }: HostDeps, { layers, frozenAreas, area }: Made, target: string): Promise<RootMount> {
  const { upper, work } = areas.paths(area);
  const lowest = await Promise.all(layers.map((digest) => config.layers.path(parseLayerDigest(digest))));
  return { layers: [...lowest, ...frozenAreas.map((frozen) => areas.paths(frozen).upper)], upper, work, target };
}

/**
 * Closes the descriptor. A removed mount may stay for a moment, while a process that is just starting still has it. A mount that stays longer
 * must not prevent the sandbox from continuing.
 */
async function mountMade(
  deps: HostDeps,
  made: Made,
  { target, usernsFd }: { target: string; usernsFd: number | undefined },
): Promise<void> {
  const { areas, logger } = deps;
  try {
    const root = { ...(await rootOf(deps, made, target)), ...(usernsFd === undefined ? {} : { usernsFd }) };
    for (let attempt = 1; ; attempt += 1) {
      try {
        const hardLinks = areas.withRoom(made.area, () => mountRootFilesystem(root, { force: attempt === ATTEMPTS }));
        if (hardLinks !== "kept") warn(logger, { hardLinks, attempt, area: made.area });
        return;
      } catch (error) {
        const isReadOnly = error instanceof PlatformError && error.code === "root_read_only";
        if (isReadOnly && attempt === 1) {
          await areas.remount(made.area);
          continue;
        }
        if (attempt === ATTEMPTS || errnoOf(error) !== "EBUSY") throw error;
      }
      await setTimeout(RELEASE_PAUSE_MS);
    }
  } finally {
    if (usernsFd !== undefined) closeSync(usernsFd);
  }
}

function warn(logger: Logger, { hardLinks, ...facts }: { hardLinks: HardLinks; attempt: number; area: string }): void {
  logger.warn(
    facts,
    hardLinks === "renewed"
      ? "a sandbox's layers are not those of before: files with several names may have been changed under one of them only"
      : "a sandbox is mounted without hard links: who changes a file of its layers changes it under one name only",
  );
}
