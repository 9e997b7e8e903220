// Volumes as a sandbox mounts them. On gVisor the files in a volume have the ids that guests see. On runc these are ids of the sandbox's user
// namespace, so the sandbox gets a mount of its own that maps them: guests of both runtimes see the same owners.

import { closeSync, existsSync, mkdirSync, openSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Logger } from "@skerry/base";
import { mountIdmapped, unmount } from "@skerry/base/linux";
import type { VolumePlan } from "@skerry/runtime";
import type { NodeConfig } from "../config.ts";
import type { Containers } from "../containers/containers.ts";
import type { HostDeps } from "../containers/host.privileged.ts";
import type { ImageStore } from "../images/image-store.privileged.ts";
import { type ContainerPaths, nodePaths } from "../paths.ts";
import type { SandboxMakeup, SandboxRecord } from "../records/sandbox-record.ts";
import { VolumeStore } from "./volume-store.privileged.ts";

/** The volumes of a node. */
export function volumesOf(config: Pick<NodeConfig, "dir" | "volumesDir">, logger: Logger): VolumeStore {
  return new VolumeStore({ dir: config.volumesDir ?? nodePaths(config.dir).volumes, logger });
}

/** The folder of volumes that the last start of the node used. */
export function volumesFolderOf(dir: string): string {
  const { volumesFolder, volumes } = nodePaths(dir);
  return existsSync(volumesFolder) ? readFileSync(volumesFolder, "utf8") : volumes;
}

/** The volumes of a node that does not run, in the folder that its last start used. */
export function volumesOfLastStart(config: Pick<NodeConfig, "dir">, logger: Logger): VolumeStore {
  return new VolumeStore({ dir: volumesFolderOf(config.dir), logger });
}

/** Throws PlatformError("already_running") after releasing the lock. */
export function startVolumes({ volumes, config, paths }: HostDeps, lock: { release(): void }): void {
  try {
    volumes.start();
    if (config.volumesDir === undefined) rmSync(paths.volumesFolder, { force: true });
    else writeFileSync(paths.volumesFolder, config.volumesDir, { mode: 0o600 });
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** What a sandbox is made of, without the volumes that were deleted: it starts from its image in any case. */
export function withoutMissing(store: VolumeStore, makeup: SandboxMakeup, logger: Logger): SandboxMakeup {
  const { volumes = [], ...rest } = makeup;
  const there = volumes.filter(({ volumeId }) => store.has(volumeId));
  if (there.length === volumes.length) return makeup;
  const missing = volumes.filter((mount) => !there.includes(mount)).map(({ volumeId }) => volumeId);
  logger.warn({ template_id: makeup.templateId, volumes: missing }, "a sandbox starts without volumes that were deleted");
  return there.length > 0 ? { ...rest, volumes: there } : rest;
}

/** Who mounts volumes on this node. */
export function findUsers(volumes: VolumeStore, { containers, images }: { containers: Containers; images: ImageStore }): void {
  volumes.usersOf = (volumeId) => {
    const mounts = (made: { readonly volumes?: SandboxRecord["volumes"] }) =>
      made.volumes?.some((mount) => mount.volumeId === volumeId) ?? false;
    const running = containers.all().filter(({ record }) => mounts(record));
    const paused = images.list().filter((image) => image.kind === "pause" && mounts(image));
    return {
      running: running.map(({ record }) => record.sandboxId || record.containerId),
      paused: paused.map(({ identity }) => identity.sandboxId),
    };
  };
}

/** Preconditions: the record is among the containers, which keeps its volumes mounted. Throws PlatformError("volume_missing"). */
export async function mountVolumes({ volumes, paths }: HostDeps, record: SandboxRecord): Promise<VolumePlan[]> {
  const own = paths.container(record.containerId);
  const { userNamespace } = record.slot;
  const plans: VolumePlan[] = [];
  for (const [index, { volumeId, path }] of (record.volumes ?? []).entries()) {
    const dir = await volumes.mountForSandbox(volumeId);
    if (!userNamespace) {
      plans.push({ path, dir });
      continue;
    }
    const target = join(own.volumes, String(index));
    mkdirSync(target, { recursive: true, mode: 0o755 });
    const usernsFd = openSync(userNamespace.path, "r");
    try {
      mountIdmapped({ source: dir, target, usernsFd });
    } finally {
      closeSync(usernsFd);
    }
    plans.push({ path, dir: target });
  }
  return plans;
}

/** Removes the mounts of an ended sandbox. When a mount point is removed, the kernel removes its mounts from every namespace. */
export function unmountVolumes({ volumes }: ContainerPaths): void {
  if (!existsSync(volumes)) return;
  for (const name of readdirSync(volumes)) {
    const target = join(volumes, name);
    while (unmount(target, { detach: true }));
    rmdirSync(target);
  }
}
