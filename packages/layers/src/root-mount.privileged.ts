// A sandbox's root file system: host overlayfs, the layers read-only below, the sandbox's own `upper` on top.
//
// With a user namespace (runc) the layers are idmapped first, or root inside would see every file owned by nobody.
// `upper` and `work` cannot be idmapped (overlayfs would quietly become read-only), so they are owned on disk by the
// namespace's root. overlayfs keeps a private copy of each lower mount, so the idmapped ones are taken away at once.
//
// Layers and `upper` are on different file systems. Only with `xino=on` does a file keep its inode number when it is changed
// for the first time, and are all files on one device, which tools that stay on one file system ask.

import { mkdirSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { PlatformError } from "@skerry/base";
import { mount, mountIdmapped, unmount } from "@skerry/base/linux";

// One page, less the terminating zero.
const MAX_OPTIONS_BYTES = 4095;

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
    const data = `lowerdir=${lowers.toReversed().map(escapeOption).join(":")},upperdir=${escapeOption(root.upper)},workdir=${escapeOption(root.work)},xino=on`;
    if (Buffer.byteLength(data) > MAX_OPTIONS_BYTES) {
      throw new PlatformError("layer_chain_too_long", `${root.layers.length} layers do not fit into one overlay mount`);
    }
    mount({ source: "overlay", target: root.target, type: "overlay", data });
  } finally {
    for (const target of idmapped) {
      unmount(target, { detach: true });
      rmdirSync(target);
    }
  }
}

/** Returns false when nothing was mounted. Detaches when something still uses it: the last user's end then frees it. */
export function unmountRootFilesystem(target: string): boolean {
  return unmount(target, { detach: true });
}

function escapeOption(path: string): string {
  return path.replaceAll("\\", "\\\\").replaceAll(":", "\\:").replaceAll(",", "\\,");
}
