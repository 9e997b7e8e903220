// Files that a sandbox on gVisor has open and that have no name any more, found from the host: gVisor's kernel keeps a descriptor
// of the host for each file in use. A list that the guest made could lie. Preconditions: the sandbox is frozen.

import { lstatSync, readdirSync, readlinkSync, type Stats, statfsSync, statSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { errnoOf } from "@skerry/base";

const DELETED = " (deleted)";
/** Where gVisor's file server sees the guest's root. */
const GUEST_ROOT = "/root";
/** The guest's root is an overlay, and nothing else that gVisor's kernel has open is: not its own memory files, and not the agent's tree. */
const OVERLAY_MAGIC = 0x794c7630;
/** Descriptors looked at in one go, which takes about a millisecond. */
const AT_ONCE = 256;

export interface DeletedFile {
  /** In the sandbox; "" where it is too long for the host to tell. */
  readonly path: string;
  readonly kind: "file" | "folder" | "link" | "other";
  /** Holes included. */
  readonly bytes: number;
  /** On disk. */
  readonly storedBytes: number;
}

/** Each file once. `rootDir` is the sandbox's root on the host. Throws when the process has ended. */
export async function deletedFilesOf(pid: number, rootDir: string): Promise<DeletedFile[]> {
  const dir = `/proc/${pid}/fd`;
  const found = new Map<string, DeletedFile>();
  const names = readdirSync(dir);
  for (let first = 0; first < names.length; first += AT_ONCE) {
    for (const name of names.slice(first, first + AT_ONCE)) addIfDeleted(join(dir, name), rootDir, found);
    await nextTurn();
  }
  return [...found.values()];
}

function addIfDeleted(descriptor: string, rootDir: string, found: Map<string, DeletedFile>): void {
  try {
    const link = targetOf(descriptor);
    if (link !== undefined && !link.endsWith(DELETED)) return;
    const about = statSync(descriptor);
    if (statfsSync(descriptor).type !== OVERLAY_MAGIC) return;
    if (link === undefined ? about.nlink > 0 : isThere(about, join(rootDir, inGuest(link)))) return;
    const path = link === undefined ? "" : inGuest(link.slice(0, -DELETED.length));
    found.set(`${about.dev}:${about.ino}`, { path, kind: kindOf(about), bytes: about.size, storedBytes: about.blocks * 512 });
  } catch (error) {
    // gVisor's own descriptors come and go.
    if (errnoOf(error) !== "ENOENT") throw error;
  }
}

/** Undefined where the path is longer than the host can say. */
function targetOf(descriptor: string): string | undefined {
  try {
    return readlinkSync(descriptor);
  } catch (error) {
    if (errnoOf(error) === "ENAMETOOLONG") return undefined;
    throw error;
  }
}

/** A file may really be called "x (deleted)". One with further links may have lost this one. */
function isThere(about: Stats, path: string): boolean {
  if (about.nlink !== 1) return false;
  try {
    const there = lstatSync(path);
    return there.ino === about.ino && there.dev === about.dev;
  } catch {
    return false;
  }
}

function inGuest(path: string): string {
  return path.startsWith(`${GUEST_ROOT}/`) ? path.slice(GUEST_ROOT.length) : path;
}

function kindOf(about: Stats): DeletedFile["kind"] {
  if (about.isFile()) return "file";
  if (about.isDirectory()) return "folder";
  return about.isSymbolicLink() ? "link" : "other";
}
