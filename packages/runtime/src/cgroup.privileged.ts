// Control groups as they lie on disk, for both versions and the hybrid of them: a sandbox's group may exist under
// several hierarchies at once. Limits themselves go through the OCI specification; here they are emptied and removed.

import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";

let ownRoots: readonly string[] | undefined;

/** Mount points of every cgroup hierarchy of this machine. Looked up once: with each sandbox the table of mounts gets longer. */
export function cgroupRoots(): readonly string[] {
  ownRoots ??= cgroupRootsIn(readFileSync("/proc/self/mounts", "utf8"));
  return ownRoots;
}

export function cgroupRootsIn(mounts: string): string[] {
  return mounts
    .split("\n")
    .map((line) => line.split(" "))
    .filter((fields) => fields[2] === "cgroup" || fields[2] === "cgroup2")
    .map((fields) => fields[1] ?? "");
}

/** Pids of everything in the group, over all hierarchies and descendants. */
export function cgroupProcesses(cgroupPath: string): number[] {
  const pids = new Set<number>();
  for (const root of cgroupRoots()) collectProcesses(join(root, cgroupPath), pids);
  return [...pids];
}

function collectProcesses(dir: string, pids: Set<number>): void {
  for (const line of readIfThere(join(dir, "cgroup.procs")).split("\n")) {
    if (line !== "") pids.add(Number(line));
  }
  for (const child of childGroups(dir)) collectProcesses(join(dir, child), pids);
}

/**
 * SIGKILL to everything in the group until nothing is left, then removes it. Throws when processes are still there after
 * `timeoutMs`: a process in uninterruptible sleep keeps its group, and saying "gone" would be wrong.
 */
export async function destroyCgroup(cgroupPath: string, timeoutMs = 10_000): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  for (let pids = cgroupProcesses(cgroupPath); pids.length > 0; pids = cgroupProcesses(cgroupPath)) {
    for (const pid of pids) killIfThere(pid);
    thaw(cgroupPath);
    if (performance.now() > deadline) throw new Error(`processes ${pids.slice(0, 10).join(", ")} in cgroup ${cgroupPath} do not end`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  for (const root of cgroupRoots()) await removeGroup(join(root, cgroupPath), deadline);
}

/** What stands still does not even end in version 1. It has been killed by now, so nothing of it runs again. */
function thaw(cgroupPath: string): void {
  for (const root of cgroupRoots()) {
    const file = join(root, cgroupPath, "freezer.state");
    if (existsSync(file)) writeFileSync(file, "THAWED");
  }
}

/** What all sandboxes of an instance may take of the host's process numbers, in percent. */
const PROCESS_SHARE_PERCENT = 80;

/**
 * Keeps all groups below `cgroupPath` together from using up the host's process numbers. Where the host has no process
 * controller, `onMissing` hears why; each sandbox's own limit then stands alone.
 */
export function limitProcesses(cgroupPath: string, onMissing: (error: unknown) => void): void {
  const all = Number(readFileSync("/proc/sys/kernel/pid_max", "utf8"));
  const limit = String(Math.floor((all * PROCESS_SHARE_PERCENT) / 100));
  let cause: unknown = new Error("no control group hierarchy has a process controller");
  for (const root of cgroupRoots()) {
    const isVersion2 = existsSync(join(root, "cgroup.controllers"));
    if (!isVersion2 && basename(root) !== "pids") continue;
    try {
      if (isVersion2) writeFileSync(join(root, "cgroup.subtree_control"), "+pids");
      mkdirSync(join(root, cgroupPath), { recursive: true });
      writeFileSync(join(root, cgroupPath, "pids.max"), limit);
      return;
    } catch (error) {
      cause = error;
    }
  }
  onMissing(cause);
}

/** Child groups of a group, by name, over all hierarchies. */
export function listCgroups(cgroupPath: string): string[] {
  return [...new Set(cgroupRoots().flatMap((root) => childGroups(join(root, cgroupPath))))];
}

/** Files that hold a group's memory limit, if it has them. Memory and swap together come first, because they may never be the lower ones. */
export function memoryLimitFiles(cgroupPath: string): string[] {
  const names = ["memory.max", "memory.memsw.limit_in_bytes", "memory.limit_in_bytes"];
  return cgroupRoots().flatMap((root) => names.map((name) => join(root, cgroupPath, name)));
}

/** Changes the memory limit of a group that has one. Throws when the kernel can't get it below the lower one. */
export function setMemoryLimit(cgroupPath: string, bytes: number): void {
  const files = memoryLimitFiles(cgroupPath).filter((file) => existsSync(file));
  if (files.some((file) => Number(readFileSync(file, "utf8")) > bytes)) files.reverse();
  if (files.length === 0) throw new Error(`cgroup ${cgroupPath} has no memory limit`);
  for (const file of files) writeFileSync(file, String(bytes));
}

async function removeGroup(dir: string, deadline: number): Promise<void> {
  for (const child of childGroups(dir)) await removeGroup(join(dir, child), deadline);
  for (;;) {
    try {
      rmdirSync(dir);
      return;
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code;
      if (code === "ENOENT") return;
      // A group whose last process has just ended is busy for a moment longer.
      if (code !== "EBUSY" || performance.now() > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

function childGroups(dir: string): string[] {
  try {
    return readdirSync(dir, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name);
  } catch (error) {
    if (isGone(error)) return [];
    throw error;
  }
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (isGone(error)) return "";
    throw error;
  }
}

/** ENODEV: the group went away between open and read. */
function isGone(error: unknown): boolean {
  return ["ENOENT", "ENODEV"].includes((error as NodeJS.ErrnoException).code ?? "");
}
