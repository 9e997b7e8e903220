// A sandbox's root file system: host overlayfs, the layers read-only below, the sandbox's own `upper` on top.
//
// With a user namespace (runc) the layers are mounted with an id mapping. Without it, root inside would see all files owned by `nobody`.
// `upper` and `work` cannot be idmapped (overlayfs would become read-only without an error), so the namespace's root owns them on disk.
// overlayfs has a private copy of each lower mount, so the idmapped mounts are removed at once.
//
// Layers and `upper` are on different file systems. `xino=on` keeps a file's inode number when it is changed for the first time, and puts
// all files on one device, which tools that stay on one file system need.
//
// `index=on` keeps a file of a layer one file under all its names when it is changed: see hard-links.privileged.ts. The kernel then refuses
// layers and an `upper` that another overlay still writes to, and an `upper` that had other layers below it before.

import { accessSync, closeSync, constants, mkdirSync, openSync, rmdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { errnoOf, PlatformError } from "@skerry/base";
import { findXattr, mount, mountIdmapped, removeXattr, unmount } from "@skerry/base/linux";
import { hasIndex, indexOf } from "./hard-links.privileged.ts";

// One page, without the terminating zero byte.
const MAX_OPTIONS_BYTES = 4095;
/** Opens without reading; Node.js has no name for it. */
const O_PATH = 0o10000000;

export interface RootMount {
  /** Layer directories, lowest first. */
  readonly layers: readonly string[];
  readonly upper: string;
  readonly work: string;
  /** Where the merged tree appears. */
  readonly target: string;
  /** An open user namespace whose mapping the layers get, or undefined for none. */
  readonly usernsFd?: number;
}

/**
 * Layers that surely fit into one mount, named by descriptors of five digits (`/proc/self/fd/12345:`) beside 200 bytes of other options.
 */
const MOST_LAYERS = Math.floor((MAX_OPTIONS_BYTES - 200) / 20);

/** For callers that cannot go back once they mount the root. Throws PlatformError("layer_chain_too_long"). */
export function assertMountable(layerCount: number): void {
  if (layerCount > MOST_LAYERS) throw tooLong(layerCount);
}

function tooLong(layerCount: number): PlatformError {
  return new PlatformError("layer_chain_too_long", `${layerCount} layers do not fit into one overlay mount`, {
    publicMessage: `The sandbox's disk consists of ${layerCount - 1} layers, which is as many as there can be, and they could not be merged`,
  });
}

/**
 * What happens to files with several names in the layers. `kept`: each stays one file. `renewed`: the same from now on, but the layers have
 * changed, and earlier changes under one name may be missing under the others. `split`: a change under one name does not affect the other
 * names, as on file systems without file handles.
 */
export type HardLinks = "kept" | "renewed" | "split";

/**
 * Throws PlatformError("root_read_only") when the root cannot be written to. Fails with EBUSY while the kernel still has another overlay that
 * writes to one of these directories; `force` mounts the root anyway, without hard links. Preconditions: root; `upper` and `work` exist on
 * one file system, and `target` exists.
 */
export function mountRootFilesystem(root: RootMount, { force = false } = {}): HardLinks {
  const idmapped: string[] = [];
  try {
    const lowers = root.layers.map((layer, index) => {
      if (root.usernsFd === undefined) return layer;
      const target = join(root.target, "..", `lower${index}`);
      mkdirSync(target);
      idmapped.push(target);
      mountIdmapped({ source: layer, target, usernsFd: root.usernsFd });
      return target;
    });
    const hardLinks = mountWritable({ ...root, layers: lowers }, force);
    assertWritable(root.target);
    return hardLinks;
  } finally {
    for (const target of idmapped) {
      unmount(target, { detach: true });
      rmdirSync(target);
    }
  }
}

function mountWritable(root: RootMount, force: boolean): HardLinks {
  if (force) {
    mountOverlay(root);
    return "split";
  }
  let isRenewed = false;
  try {
    mountOverlay({ ...root, index: true });
  } catch (error) {
    // The layers have changed, or have moved to another file system: the index is not valid any more.
    if (errnoOf(error) !== "ESTALE") throw error;
    forgetLayers(root);
    mountOverlay({ ...root, index: true });
    isRenewed = true;
  }
  // If a file system does not support an index, the kernel mounts without one and reports no error.
  if (!hasIndex(root.work)) return "split";
  return isRenewed ? "renewed" : "kept";
}

const ORIGIN = "trusted.overlay.origin";

/** Removes the references of an `upper` to its former layers. Its files stay. */
function forgetLayers({ upper, work }: RootMount): void {
  rmSync(indexOf(work), { recursive: true, force: true });
  if (findXattr(Buffer.from(upper), ORIGIN)) removeXattr(upper, ORIGIN);
}

/** If overlayfs cannot create its work directory, it mounts read-only without an error. */
function assertWritable(target: string): void {
  try {
    accessSync(target, constants.W_OK);
  } catch (cause) {
    unmount(target, { detach: true });
    throw new PlatformError("root_read_only", `${target} can only be read`, {
      publicMessage: "The sandbox's disk can't be written to: there is no room on it, or it was damaged",
      cause,
    });
  }
}

/** Mounts layers together, read-only. Preconditions: root; at least two layers, lowest first; `target` exists. */
export function mountLayers(view: Pick<RootMount, "layers" | "target">): void {
  mountOverlay(view);
}

type Overlay = Pick<RootMount, "layers" | "target"> & Partial<Pick<RootMount, "upper" | "work">> & { readonly index?: boolean };

/** Names the layers of long chains by open descriptors, which take 20 bytes each, whatever the path is. */
function mountOverlay(overlay: Overlay): void {
  const { layers, target } = overlay;
  const named = overlayOptions(overlay, (path) => path);
  if (fits(named)) {
    mount({ source: "overlay", target, type: "overlay", data: named });
    return;
  }
  const open: number[] = [];
  try {
    const data = overlayOptions(overlay, (path) => {
      const fd = openSync(path, O_PATH | constants.O_DIRECTORY);
      open.push(fd);
      return `/proc/self/fd/${fd}`;
    });
    if (!fits(data)) throw tooLong(layers.length);
    mount({ source: "overlay", target, type: "overlay", data });
  } finally {
    for (const fd of open) closeSync(fd);
  }
}

/** All options are explicit, whatever the kernel's defaults: a frozen `upper` must mean the same in every chain, and it must be mergeable. */
function overlayOptions({ layers, upper, work, index = false }: Overlay, name: (path: string) => string): string {
  const named = (path: string) => escapeOption(name(path));
  const above = upper === undefined || work === undefined ? "" : `upperdir=${named(upper)},workdir=${named(work)},`;
  return `lowerdir=${layers.toReversed().map(named).join(":")},${above}xino=on,redirect_dir=off,metacopy=off,index=${index ? "on" : "off"}`;
}

function fits(options: string): boolean {
  return Buffer.byteLength(options) <= MAX_OPTIONS_BYTES;
}

/** Returns false when nothing was mounted. A mount that is still in use is detached and freed after its last user. */
export function unmountRootFilesystem(target: string): boolean {
  return unmount(target, { detach: true });
}

/**
 * Unmounts a root in all mount namespaces: when the mount point is removed, the kernel removes the mount from every namespace. Otherwise the
 * kernel would refuse the next mount of its `upper`.
 */
export function removeRootFilesystem(target: string): void {
  while (unmount(target, { detach: true }));
  try {
    rmdirSync(target);
  } catch (error) {
    if (!["ENOENT", "ENOTEMPTY"].includes(errnoOf(error) ?? "")) throw error;
  }
}

function escapeOption(path: string): string {
  return path.replaceAll("\\", "\\\\").replaceAll(":", "\\:").replaceAll(",", "\\,");
}
