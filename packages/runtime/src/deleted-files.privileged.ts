// Finds the deleted files that a sandbox on gVisor has open. The node looks at the host's descriptors of gVisor's kernel, which has one
// for each file in use, because the guest could lie. Preconditions: the sandbox is frozen.

import { lstatSync, readdirSync, readlinkSync, type Stats, statfsSync, statSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { errnoOf } from "@skerry/base";
import type { SurveyTarget, VolumePlan } from "./runtime.ts";

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

/** Lists each file once. Throws when the process has ended. */
export async function deletedFilesOf({ pid, rootDir, volumes }: SurveyTarget): Promise<DeletedFile[]> {
  const places: Places = { rootDir, volumes: new Map(volumes.flatMap((volume) => deviceOf(volume))) };
  const dir = `/proc/${pid}/fd`;
  const found = new Map<string, DeletedFile>();
  const names = readdirSync(dir);
  for (let first = 0; first < names.length; first += AT_ONCE) {
    for (const name of names.slice(first, first + AT_ONCE)) addIfDeleted(join(dir, name), places, found);
    await nextTurn();
  }
  return [...found.values()];
}

/** None of a volume that was deleted. */
function deviceOf(volume: VolumePlan): [number, VolumePlan][] {
  const about = statSync(volume.dir, { throwIfNoEntry: false });
  return about ? [[about.dev, volume]] : [];
}

interface Places {
  readonly rootDir: string;
  /** By the number of their device: a volume is a file system of its own. */
  readonly volumes: ReadonlyMap<number, VolumePlan>;
}

function addIfDeleted(descriptor: string, { rootDir, volumes }: Places, found: Map<string, DeletedFile>): void {
  try {
    const link = targetOf(descriptor);
    if (link !== undefined && !link.endsWith(DELETED)) return;
    const about = statSync(descriptor);
    const volume = volumes.get(about.dev);
    if (!volume && statfsSync(descriptor).type !== OVERLAY_MAGIC) return;
    if (link === undefined ? about.nlink > 0 : isThere(about, onHost(inGuest(link), volume, rootDir))) return;
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

/** The volume is mounted in the namespace of gVisor only: on the host, it has its own path. */
function onHost(path: string, volume: VolumePlan | undefined, rootDir: string): string {
  return volume && path.startsWith(`${volume.path}/`) ? join(volume.dir, path.slice(volume.path.length)) : join(rootDir, path);
}

function inGuest(path: string): string {
  return path.startsWith(`${GUEST_ROOT}/`) ? path.slice(GUEST_ROOT.length) : path;
}

function kindOf(about: Stats): DeletedFile["kind"] {
  if (about.isFile()) return "file";
  if (about.isDirectory()) return "folder";
  return about.isSymbolicLink() ? "link" : "other";
}
