// A copy of an area as a layer for others: for runtimes whose sandboxes can't be moved onto a new area while they run.
// Its files get the ids that they have inside; a layer is mapped for each user namespace that it is shown in.

import { chmodSync, lchownSync, lstatSync } from "node:fs";
import { setXattr } from "@skerry/base/linux";
import { copyTree, walkTrees } from "@skerry/layers";

import { shiftedXattrs } from "./id-xattrs.privileged.ts";

const SET_ID_BITS = 0o6000;

/** Preconditions: nothing writes to `from`; `to` is empty. `idBase`: what root inside is in `from`. */
export async function copyUpper(from: string, to: string, idBase: number): Promise<void> {
  // Device files and trusted.overlay attributes are how an overlay says that something was deleted or replaced.
  await copyTree(from, to);
  if (idBase > 0) await shiftOwners(to, idBase);
}

/** Gives the files of a tree the ids that they have inside. Preconditions: nothing else uses the tree. */
export async function shiftOwners(root: string, idBase: number): Promise<void> {
  const shifted = new Set<number>();
  await walkTrees([root], {
    async enter([folder], { pace }) {
      if (!folder) return [];
      shiftOwner(folder.path("."), idBase, shifted);
      const entries = folder.entries();
      for (const entry of entries) {
        if (!entry.isDirectory()) shiftOwner(folder.path(entry.name), idBase, shifted);
        await pace.keep();
      }
      return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
    },
  });
}

/** `shifted`: inodes that were done under another name. */
function shiftOwner(path: Buffer, idBase: number, shifted: Set<number>): void {
  const about = lstatSync(path);
  if (about.nlink > 1 && !about.isDirectory()) {
    if (shifted.has(about.ino)) return;
    shifted.add(about.ino);
  }
  const attributes = about.isFile() || about.isDirectory() ? shiftedXattrs(path, idBase) : [];
  lchownSync(path, Math.max(0, about.uid - idBase), Math.max(0, about.gid - idBase));
  // Changing the owner takes these away.
  if (about.isFile() && (about.mode & SET_ID_BITS) !== 0) chmodSync(path, about.mode & 0o7777);
  for (const { name, value } of attributes) setXattr(path, name, value);
}
