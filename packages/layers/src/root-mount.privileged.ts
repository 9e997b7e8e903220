// A sandbox's root file system: host overlayfs, the layers read-only below, the sandbox's own `upper` on top.
//
// With a user namespace (runc) the layers are idmapped first, or root inside would see every file owned by nobody.
// `upper` and `work` cannot be idmapped (overlayfs would quietly become read-only), so they are owned on disk by the
// namespace's root. overlayfs keeps a private copy of each lower mount, so the idmapped ones are taken away at once.
//
// Layers and `upper` are on different file systems. Only with `xino=on` does a file keep its inode number when it is changed
// for the first time, and are all files on one device, which tools that stay on one file system ask.

import { accessSync, closeSync, constants, mkdirSync, openSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { PlatformError } from "@skerry/base";
import { mount, mountIdmapped, unmount } from "@skerry/base/linux";

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
 * Throws PlatformError("root_read_only") when nothing can be written to it. Preconditions: root; `upper` and `work` exist on one file
 * system, `target` exists.
 */
export function mountRootFilesystem(root: RootMount): void {
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
    mountOverlay({ ...root, layers: lowers });
    assertWritable(root.target);
  } finally {
    for (const target of idmapped) {
      unmount(target, { detach: true });
      rmdirSync(target);
    }
  }
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

type Overlay = Pick<RootMount, "layers" | "target"> & Partial<Pick<RootMount, "upper" | "work">>;

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
function overlayOptions({ layers, upper, work }: Overlay, name: (path: string) => string): string {
  const named = (path: string) => escapeOption(name(path));
  const above = upper === undefined || work === undefined ? "" : `upperdir=${named(upper)},workdir=${named(work)},`;
  return `lowerdir=${layers.toReversed().map(named).join(":")},${above}xino=on,redirect_dir=off,metacopy=off,index=off`;
}

function fits(options: string): boolean {
  return Buffer.byteLength(options) <= MAX_OPTIONS_BYTES;
}

/** Returns false when nothing was mounted. Detaches when something still uses it: the last user's end then frees it. */
export function unmountRootFilesystem(target: string): boolean {
  return unmount(target, { detach: true });
}

function escapeOption(path: string): string {
  return path.replaceAll("\\", "\\\\").replaceAll(":", "\\:").replaceAll(",", "\\,");
}
