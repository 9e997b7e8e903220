// A copy of an area as a layer for others: for runtimes whose sandboxes can't be moved onto a new area while they run.
// Its files get the ids that they have inside; a layer is mapped for each user namespace that it is shown in.

import { chmodSync, lchownSync, lstatSync, type PathLike, readdirSync } from "node:fs";
import { runCommand } from "@skerry/base";

const COPY_TIMEOUT_MS = 600_000;
const ENTRIES_AT_ONCE = 2_000;
const SET_ID_BITS = 0o6000;

/** Preconditions: nothing writes to `from`; `to` is empty. `idBase`: what root inside is in `from`. */
export async function copyUpper(from: string, to: string, idBase: number): Promise<void> {
  // Device files and trusted.overlay attributes are how an overlay says that something was deleted or replaced.
  const options = ["--archive", "--reflink=auto", "--sparse=auto", "--no-target-directory"];
  await runCommand("cp", [...options, "--", from, to], { timeoutMs: COPY_TIMEOUT_MS });
  if (idBase > 0) await shiftOwners(to, idBase);
}

async function shiftOwners(root: string, idBase: number): Promise<void> {
  const shifted = new Set<number>();
  const folders = [Buffer.from(root)];
  let count = 0;
  shiftOwner(root, idBase, shifted);
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    // Names as bytes: guests use what is no text.
    for (const entry of readdirSync(folder, { withFileTypes: true, encoding: "buffer" })) {
      const path = Buffer.concat([folder, Buffer.from("/"), entry.name]);
      shiftOwner(path, idBase, shifted);
      if (entry.isDirectory()) folders.push(path);
      count += 1;
      if (count % ENTRIES_AT_ONCE === 0) await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

/** `shifted`: inodes that were done under another name. */
function shiftOwner(path: PathLike, idBase: number, shifted: Set<number>): void {
  const about = lstatSync(path);
  if (about.nlink > 1 && !about.isDirectory()) {
    if (shifted.has(about.ino)) return;
    shifted.add(about.ino);
  }
  lchownSync(path, Math.max(0, about.uid - idBase), Math.max(0, about.gid - idBase));
  // Changing the owner takes these away.
  if (about.isFile() && (about.mode & SET_ID_BITS) !== 0) chmodSync(path, about.mode & 0o7777);
}
