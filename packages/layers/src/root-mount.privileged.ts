// A sandbox's root file system: host overlayfs, the layers read-only below, the sandbox's own `upper` on top.
//
// With a user namespace (runc) the layers are idmapped first, or root inside would see every file owned by nobody.
// `upper` and `work` cannot be idmapped (overlayfs would quietly become read-only), so they are owned on disk by the
// namespace's root. overlayfs keeps a private copy of each lower mount, so the idmapped ones are taken away at once.
//
// Layers and `upper` are on different file systems. Only with `xino=on` does a file keep its inode number when it is changed
// for the first time, and are all files on one device, which tools that stay on one file system ask.
//
// Only with `index=on` does a file of a layer stay one file under all its names when it is changed: see hard-links.privileged.ts. The
// kernel then takes no layer and no `upper` that another overlay still writes to, and no other layers below an `upper` than before.

import { accessSync, closeSync, constants, mkdirSync, openSync, rmdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { errnoOf, PlatformError } from "@skerry/base";
import { findXattr, mount, mountIdmapped, removeXattr, unmount } from "@skerry/base/linux";
import { hasIndex, indexOf } from "./hard-links.privileged.ts";

// One page, less the terminating zero.
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

/** For what can't be undone once its root has to be mounted. Throws PlatformError("layer_chain_too_long"). */
export function assertMountable(layerCount: number): void {
  if (layerCount > MOST_LAYERS) throw tooLong(layerCount);
}

function tooLong(layerCount: number): PlatformError {
  return new PlatformError("layer_chain_too_long", `${layerCount} layers do not fit into one overlay mount`, {
    publicMessage: `The sandbox's disk consists of ${layerCount - 1} layers, which is as many as there can be, and they could not be merged`,
  });
}

/**
 * What becomes of files with several names in the layers. `kept`: they stay one file each. `renewed`: from now on; the layers are not those
 * of before, and what was changed in such a file under one name may be missing under others. `split`: whoever changes one changes it under
 * one name only, as file systems without file handles have it.
 */
export type HardLinks = "kept" | "renewed" | "split";

/**
 * Throws PlatformError("root_read_only") when nothing can be written to it, and fails with EBUSY while another overlay that writes to one of
 * these folders is not quite gone; `force` mounts it even so, without hard links. Preconditions: root; `upper` and `work` exist on one file
 * system, `target` exists.
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
    // Other layers than before, or the same ones on another file system: what the index says of them means nothing any more.
    if (errnoOf(error) !== "ESTALE") throw error;
    forgetLayers(root);
    mountOverlay({ ...root, index: true });
    isRenewed = true;
  }
  // Where a file system can't do it, the kernel mounts without an index, and says nothing.
  if (!hasIndex(root.work)) return "split";
  return isRenewed ? "renewed" : "kept";
}

const ORIGIN = "trusted.overlay.origin";

/** What an `upper` and its index know of the layers that they lay on. Their files stay. */
function forgetLayers({ upper, work }: RootMount): void {
  rmSync(indexOf(work), { recursive: true, force: true });
  if (findXattr(Buffer.from(upper), ORIGIN)) removeXattr(upper, ORIGIN);
}

/** Where overlayfs can't make its work directory it falls back to reading only, without an error. */
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

/** What layers show together, to look at. Preconditions: root; at least two layers, lowest first; `target` exists. */
export function mountLayers(view: Pick<RootMount, "layers" | "target">): void {
  mountOverlay(view);
}

type Overlay = Pick<RootMount, "layers" | "target"> & Partial<Pick<RootMount, "upper" | "work">> & { readonly index?: boolean };

/** Long chains are named by open descriptors: 20 bytes for each layer whatever its path is. */
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

/** Whatever the kernel's defaults are: a frozen `upper` must mean the same below any other chain, and be possible to merge. */
function overlayOptions({ layers, upper, work, index = false }: Overlay, name: (path: string) => string): string {
  const named = (path: string) => escapeOption(name(path));
  const above = upper === undefined || work === undefined ? "" : `upperdir=${named(upper)},workdir=${named(work)},`;
  return `lowerdir=${layers.toReversed().map(named).join(":")},${above}xino=on,redirect_dir=off,metacopy=off,index=${index ? "on" : "off"}`;
}

function fits(options: string): boolean {
  return Buffer.byteLength(options) <= MAX_OPTIONS_BYTES;
}

/** Returns false when nothing was mounted. Detaches when something still uses it: the last user's end then frees it. */
export function unmountRootFilesystem(target: string): boolean {
  return unmount(target, { detach: true });
}

/**
 * Unmounts it for good, also where others have their own copies of this machine's mounts: the kernel takes a mount away from everybody with
 * the folder that it is on. What its `upper` is then to be mounted for would be refused otherwise.
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
