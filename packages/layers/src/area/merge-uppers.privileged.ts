// Several frozen uppers as one that means the same above any layers: what the higher ones replaced or deleted is gone, and what they say
// of the layers below (deleted, opaque) stays said. Chains of snapshots would grow for ever otherwise.
//
// An overlay says "deleted" by a device file 0:0, and "nothing of below is in this folder" by an attribute of the folder. With
// `redirect_dir=off` and `metacopy=off`, as all our roots are mounted, there is nothing else to know.

import { closeSync, lstatSync, openSync, readdirSync, rmSync, type Stats } from "node:fs";
import { PlatformError, runCommand } from "@skerry/base";
import { listXattrs, readXattr, removeXattr } from "@skerry/base/linux";

const COPY_TIMEOUT_MS = 3_600_000;
const ENTRIES_AT_ONCE = 1_000;
const OVERLAY_PREFIX = "trusted.overlay.";
const OPAQUE = "trusted.overlay.opaque";

/** Preconditions: root; nothing writes to `uppers`, lowest first; `target` is empty. What is there after a failure is for the caller to remove. */
export async function mergeUppers(uppers: readonly string[], target: string): Promise<void> {
  for (const [at, upper] of uppers.entries()) {
    if (at > 0) await makeWay(upper, target);
    const options = ["--archive", "--reflink=auto", "--sparse=auto", "--no-target-directory"];
    await runCommand("nice", ["cp", ...options, "--", upper, target], { timeoutMs: COPY_TIMEOUT_MS });
  }
}

/** Removes from `target` whatever `upper` replaces. Folders that are in both stay, with the attributes that `upper` gives them. */
async function makeWay(upper: string, target: string): Promise<void> {
  const folders: [Buffer, Buffer][] = [[Buffer.from(upper), Buffer.from(target)]];
  let count = 0;
  for (let pair = folders.pop(); pair !== undefined; pair = folders.pop()) {
    const [from, to] = pair;
    // Names as bytes: guests use what is no text.
    for (const entry of readdirSync(from, { withFileTypes: true, encoding: "buffer" })) {
      count += 1;
      if (count % ENTRIES_AT_ONCE === 0) await new Promise((resolve) => setImmediate(resolve));
      const [higher, lower] = [join(from, entry.name), join(to, entry.name)];
      const there = lstatSync(lower, { throwIfNoEntry: false });
      if (there === undefined) continue;
      if (mergesWith(higher, there)) {
        takeAttributes(higher, lower);
        folders.push([higher, lower]);
      } else rmSync(lower, { recursive: true, force: true });
    }
  }
}

function mergesWith(higher: Buffer, lower: Stats): boolean {
  if (!lstatSync(higher).isDirectory()) return false;
  const isOpaque = withPath(higher, (path) => listXattrs(path).includes(OPAQUE) && readXattr(path, OPAQUE).toString() === "y");
  if (isOpaque) return false;
  // A folder in the place of anything else is opaque: the kernel saw to that.
  if (!lower.isDirectory()) throw new PlatformError("layer_chain_invalid", "a folder that is not opaque lies on something that is none");
  return true;
}

/** `cp` adds attributes and takes none away. */
function takeAttributes(higher: Buffer, lower: Buffer): void {
  const kept = new Set(withPath(higher, listXattrs));
  withPath(lower, (path) => {
    for (const name of listXattrs(path)) if (!kept.has(name) && !name.startsWith(OVERLAY_PREFIX)) removeXattr(path, name);
  });
}

/** A name for a folder that is text, whatever its own is. */
function withPath<T>(folder: Buffer, work: (path: string) => T): T {
  const fd = openSync(folder, "r");
  try {
    return work(`/proc/self/fd/${fd}/.`);
  } finally {
    closeSync(fd);
  }
}

function join(folder: Buffer, name: Buffer): Buffer {
  return Buffer.concat([folder, Buffer.from("/"), name]);
}
