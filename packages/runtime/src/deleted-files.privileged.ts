// Finds the deleted files that a sandbox on gVisor has open. The node looks at the host's descriptors of gVisor's kernel, which has one
// for each file in use, because the guest could lie. Preconditions: the sandbox is frozen.

import { lstatSync, readdirSync, readlinkSync, type Stats, statfsSync, statSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { errnoOf } from "@skerry/base";

const DELETED = " (deleted)";
/** Path of the guest's root for gVisor's file server. */
const GUEST_ROOT = "/root";
/** File system type of the guest's root. Other open files of gVisor's kernel (its memory files, the agent's tree) are not on an overlay. */
const OVERLAY_MAGIC = 0x794c7630;
/** Descriptors per turn of the event loop, which take about a millisecond. */
const AT_ONCE = 256;

export interface DeletedFile {
  /** Path in the sandbox; "" when it is too long for the host to report. */
  readonly path: string;
  readonly kind: "file" | "folder" | "link" | "other";
  /** Size of the file, including holes. */
  readonly bytes: number;
  /** Space that the file takes on the disk. */
  readonly storedBytes: number;
}

/** Lists each file once. `rootDir` is the root of the sandbox on the host. Throws when the process has ended. */
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
    // gVisor closed one of its own descriptors meanwhile.
    if (errnoOf(error) !== "ENOENT") throw error;
  }
}

/** Undefined when the path is longer than the host can report. */
function targetOf(descriptor: string): string | undefined {
  try {
    return readlinkSync(descriptor);
  } catch (error) {
    if (errnoOf(error) === "ENAMETOOLONG") return undefined;
    throw error;
  }
}

/** The name of an existing file may end in " (deleted)". A file with several links may have lost this one. */
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
