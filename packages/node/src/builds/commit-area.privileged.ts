// Makes a layer of what the sandbox of a build step wrote.

import { lstatSync, readdirSync, renameSync, rmdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { errnoOf } from "@skerry/base";
import { findXattr } from "@skerry/base/linux";
import { cleanUpper, type LayerDigest, parseLayerDigest, removeRootFilesystem } from "@skerry/layers";
import { destroyCgroup } from "@skerry/runtime";
import { copyUpper, shiftOwners } from "../areas/copy-area.privileged.ts";
import type { Containers, LiveContainer } from "../containers/containers.ts";
import type { HostDeps } from "../containers/host.privileged.ts";
import { linkUpArea } from "../containers/root.privileged.ts";
import { ROOT_DIRECTORIES, ROOT_FILES } from "../containers/root-files.privileged.ts";
import { crashPoint } from "../crash-points.ts";
import { removeSiteCertificates } from "./site-certificates.privileged.ts";

/** Directories that a runtime makes in a root file system without them, and mounts over. */
const MOUNT_POINTS = [".skerry", "dev", "proc", "sys"].map((name) => ({ name, mode: 0o755 }));
/** On a directory: nothing of the layers below shows through. */
const OPAQUE = "trusted.overlay.opaque";

export interface Commit {
  readonly deps: HostDeps;
  readonly containers: Containers;
  readonly live: LiveContainer;
  readonly holder: string;
}

/**
 * Ends the sandbox, and adopts the upper directory of its area as a layer that the holder holds. Returns undefined when the sandbox wrote
 * nothing. Whatever happens, nothing else of the sandbox is left.
 */
export async function commitArea({ deps, containers, live, holder }: Commit): Promise<LayerDigest | undefined> {
  const { record, build } = live;
  if (build) build.isCommitting = true;
  try {
    await destroyCgroup(record.cgroupPath);
    crashPoint("build.processes-ended");
    await linkUpArea(deps, record);
    removeRootFilesystem(deps.paths.container(record.containerId).root);
    crashPoint("build.unmounted");
    const { upper } = deps.areas.paths(record.area);
    const idBase = record.slot.userNamespace?.idBase ?? 0;
    const below = await Promise.all(record.layers.map((digest) => deps.config.layers.path(parseLayerDigest(digest))));
    removeSiteCertificates({ upper, layers: below, idBase });
    removeOwnFiles(upper, idBase);
    if (readdirSync(upper).length === 0) return undefined;
    return await adopt(deps, { upper, idBase, holder });
  } finally {
    if (build) build.isCommitting = false;
    await containers.tryToGiveBack(record);
  }
}

async function adopt(
  { config: { layers } }: HostDeps,
  { upper, idBase, holder }: { readonly upper: string; readonly idBase: number; readonly holder: string },
): Promise<LayerDigest> {
  const staged = await layers.stagingDir();
  try {
    if (moved(upper, staged)) {
      if (idBase > 0) await shiftOwners(staged, idBase);
    } else await copyUpper(upper, staged, idBase);
    await cleanUpper(staged);
    crashPoint("build.staged");
    const digest = await layers.adopt(staged, { holder });
    crashPoint("build.adopted");
    return digest;
  } catch (error) {
    await layers.discard(staged);
    throw error;
  }
}

/** An area without a limit is a plain tree, mostly on the file system of the layers. */
function moved(upper: string, staged: string): boolean {
  try {
    renameSync(upper, staged);
    return true;
  } catch (error) {
    if (errnoOf(error) !== "EXDEV") throw error;
    return false;
  }
}

/**
 * Every sandbox gets these files anew, so no layer has them. Directories that hold nothing else go as well, unless the guest changed them.
 * A guest may have put a link in the place of a directory, which must not be followed.
 */
export function removeOwnFiles(upper: string, ownerId: number): void {
  const isDirectory = (name: string) => lstatSync(join(upper, name), { throwIfNoEntry: false })?.isDirectory() === true;
  for (const path of ROOT_FILES) if (isDirectory(dirname(path))) rmSync(join(upper, path), { recursive: true, force: true });
  for (const { name, mode } of [...ROOT_DIRECTORIES, ...MOUNT_POINTS]) {
    const path = join(upper, name);
    if (!isDirectory(name) || readdirSync(path).length > 0 || findXattr(Buffer.from(path), OPAQUE)) continue;
    const about = lstatSync(path);
    if (about.uid === ownerId && (about.mode & 0o7777) === mode) rmdirSync(path);
  }
}
