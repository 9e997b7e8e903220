// A sandbox's root file system: host overlayfs, the layers read-only below, the sandbox's own `upper` on top.
//
// With a user namespace (runc) the layers are idmapped first, or root inside would see every file owned by nobody.
// `upper` and `work` cannot be idmapped (overlayfs would quietly become read-only), so they are owned on disk by the
// namespace's root. overlayfs keeps a private copy of each lower mount, so the idmapped ones are taken away at once.
//
// Layers and `upper` are on different file systems. Only with `xino=on` does a file keep its inode number when it is changed
// for the first time, and are all files on one device, which tools that stay on one file system ask.

import { closeSync, constants, mkdirSync, openSync, rmdirSync } from "node:fs";
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

/** Preconditions: root; `upper` and `work` exist on one file system, `target` exists. */
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
  } finally {
    for (const target of idmapped) {
      unmount(target, { detach: true });
      rmdirSync(target);
    }
  }
}

/** Long chains are named by open descriptors: 20 bytes for each layer whatever its path is. */
function mountOverlay({ layers, upper, work, target }: RootMount): void {
  const named = overlayOptions({ layers, upper, work });
  if (fits(named)) {
    mount({ source: "overlay", target, type: "overlay", data: named });
    return;
  }
  const open: number[] = [];
  try {
    const short = [...layers, upper, work].map((path) => {
      const fd = openSync(path, O_PATH | constants.O_DIRECTORY);
      open.push(fd);
      return `/proc/self/fd/${fd}`;
    });
    const data = overlayOptions({ layers: short.slice(0, layers.length), upper: short.at(-2) ?? "", work: short.at(-1) ?? "" });
    if (!fits(data)) throw new PlatformError("layer_chain_too_long", `${layers.length} layers do not fit into one overlay mount`);
    mount({ source: "overlay", target, type: "overlay", data });
  } finally {
    for (const fd of open) closeSync(fd);
  }
}

/** Whatever the kernel's defaults are: a frozen `upper` must mean the same below any other chain, and be possible to merge. */
function overlayOptions({ layers, upper, work }: Pick<RootMount, "layers" | "upper" | "work">): string {
  const lowers = layers.toReversed().map(escapeOption).join(":");
  return `lowerdir=${lowers},upperdir=${escapeOption(upper)},workdir=${escapeOption(work)},xino=on,redirect_dir=off,metacopy=off,index=off`;
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
