// Several frozen uppers as one that means the same above any layers: what the higher ones replaced or deleted is gone, and what they say
// of the layers below (deleted, opaque) stays said. Chains of snapshots would grow for ever otherwise.
//
// An overlay of the uppers alone shows what is left of them, so only that is copied, however much was deleted. What it does not show are
// the two things that an overlay says of layers below: "deleted" is a device file 0:0, and "nothing of below is in this folder" an
// attribute of the folder. With `redirect_dir=off` and `metacopy=off`, as all our roots are mounted, there is nothing else to know.

import { constants, lstatSync, mkdtempSync, rmdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { runCommand } from "@skerry/base";
import { listXattrs, makeNode, readXattr, unmount, writeXattr } from "@skerry/base/linux";
import { mountLayers } from "../root-mount.privileged.ts";
import { copyTree } from "./copy-tree.privileged.ts";
import { walkTrees } from "./descent.privileged.ts";

const COUNT_TIMEOUT_MS = 600_000;
const OPAQUE = "trusted.overlay.opaque";
/** Without it a folder that only one layer has is listed with its "deleted" files. Empty: from where is not known. */
const ORIGIN = "trusted.overlay.origin";

/**
 * Preconditions: root; nothing writes to `uppers`, lowest first, at least two; `target` is empty, and beside it on its file system is room
 * for a folder. What is there after a failure is for the caller to remove.
 */
export async function mergeUppers(uppers: readonly string[], target: string): Promise<void> {
  await withView(uppers, dirname(target), (view) => copyTree(view, target));
  for (const upper of uppers) await sayOfBelow(upper, target);
}

/** Bytes of what is left of these when they are merged. `dir` takes a folder for the moment. Preconditions as above. */
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

/** Whatever else there is now at the same place was made later, and hides by itself what is below. */
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
