// Merges several frozen uppers into one that means the same above any layers. Files that a higher upper replaced or deleted are left out.
// Marks that concern the layers below (deleted, opaque) are kept. Without merges, chains of snapshots would grow forever.
//
// An overlay of the uppers alone shows the remaining files, so only those are copied. It does not show the two marks of overlayfs: a deleted
// file is a device node 0:0, and an opaque directory, which hides everything below it, has an attribute. All roots are mounted with
// `redirect_dir=off` and `metacopy=off`, so there are no other marks.

import { constants, lstatSync, mkdtempSync, rmdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { runCommand } from "@skerry/base";
import { listXattrs, makeNode, readXattr, unmount, writeXattr } from "@skerry/base/linux";
import { mountLayers } from "../root-mount.privileged.ts";
import { copyTree } from "./copy-tree.privileged.ts";
import { walkTrees } from "./descent.privileged.ts";

const COUNT_TIMEOUT_MS = 600_000;
const OPAQUE = "trusted.overlay.opaque";
/** Without this attribute, overlayfs lists the deleted files of a directory that only one layer has. Empty: the origin is unknown. */
const ORIGIN = "trusted.overlay.origin";

/**
 * Preconditions: root; nothing writes to `uppers`, which are at least two, lowest first; `target` is empty, and a directory can be created
 * beside it. After a failure, the caller removes what is in `target`.
 */
export async function mergeUppers(uppers: readonly string[], target: string): Promise<void> {
  await withView(uppers, dirname(target), (view) => copyTree(view, target));
  for (const upper of uppers) await sayOfBelow(upper, target);
}

/** Copies the file system that a whole chain of layers makes, lowest first, into `target`: without marks, because nothing is below it. */
export async function flattenLayers(chain: readonly string[], target: string): Promise<void> {
  await withView(chain, dirname(target), (view) => copyTree(view, target));
}

/** The size of the merged tree in bytes. `dir` takes a temporary directory. Preconditions as above. */
export function mergedBytes(uppers: readonly string[], dir: string): Promise<number> {
  return withView(uppers, dir, async (view) => {
    const { stdout } = await runCommand("nice", ["du", "--summarize", "--block-size=1", "--", view], { timeoutMs: COUNT_TIMEOUT_MS });
    return Number.parseInt(stdout, 10);
  });
}

async function withView<T>(uppers: readonly string[], dir: string, work: (view: string) => Promise<T>): Promise<T> {
  const view = mkdtempSync(join(dir, "view-"));
  try {
    mountLayers({ layers: uppers, target: view });
    return await work(view);
  } finally {
    unmount(view, { detach: true });
    rmdirSync(view);
  }
}

/** Copies the marks of an upper. Any other file at the same place is newer and hides what is below by itself. */
async function sayOfBelow(upper: string, target: string): Promise<void> {
  await walkTrees([upper, target], {
    async enter([from, to], { pace }) {
      if (!from || !to) return [];
      if (isOpaque(from.path(".").toString())) writeXattr(to.path(".").toString(), OPAQUE, "y");
      const folders: Buffer[] = [];
      for (const entry of from.entries()) {
        const there = lstatSync(to.path(entry.name), { throwIfNoEntry: false });
        if (entry.isDirectory() && there?.isDirectory()) folders.push(entry.name);
        if (entry.isCharacterDevice() && there === undefined && lstatSync(from.path(entry.name)).rdev === 0) {
          makeNode(to.path(entry.name), { mode: constants.S_IFCHR, device: 0 });
          writeXattr(to.path(".").toString(), ORIGIN, "");
        }
        await pace.keep();
      }
      return folders;
    },
  });
}

function isOpaque(folder: string): boolean {
  return listXattrs(folder).includes(OPAQUE) && readXattr(folder, OPAQUE).toString() === "y";
}
