// Reads, empties and removes cgroups, for version 1, version 2 and the hybrid of both, in which the cgroup of a sandbox exists in several
// hierarchies. The OCI specification sets the limits.

import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";

let ownRoots: readonly string[] | undefined;

/** Mount points of all cgroup hierarchies. Read once, because the table of mounts grows with each sandbox. */
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

/** Pids of all processes in the cgroup and its descendants, in all hierarchies. */
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
 * Kills all processes of the cgroup, and then removes it. Throws when processes are left after `timeoutMs`. A process in uninterruptible
 * sleep keeps its cgroup, so the cgroup must not be reported as removed.
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

/** Thaws the cgroup: in version 1 a frozen process does not end. The processes are already killed, so none of them runs again. */
function thaw(cgroupPath: string): void {
  for (const root of cgroupRoots()) {
    const file = join(root, cgroupPath, "freezer.state");
    if (existsSync(file)) writeFileSync(file, "THAWED");
  }
}

/** Share of the host's process numbers that all sandboxes of an instance may use, in percent. */
const PROCESS_SHARE_PERCENT = 80;

/**
 * Limits the processes of all cgroups below `cgroupPath` together, so that they cannot use up the host's process numbers. Calls `onMissing`
 * with the reason when the host has no process controller. Only the limit of each sandbox applies then.
 */
export function limitProcesses(cgroupPath: string, onMissing: (error: unknown) => void): void {
  const all = Number(readFileSync("/proc/sys/kernel/pid_max", "utf8"));
  const limit = String(Math.floor((all * PROCESS_SHARE_PERCENT) / 100));
  let cause: unknown = new Error("no cgroup hierarchy has a process controller");
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

/** Names of the child cgroups, in all hierarchies. */
export function listCgroups(cgroupPath: string): string[] {
  return [...new Set(cgroupRoots().flatMap((root) => childGroups(join(root, cgroupPath))))];
}

/** Files with the memory limit of a cgroup. The limit of memory and swap comes first, because it must never be the lower one. */
export function memoryLimitFiles(cgroupPath: string): string[] {
  const names = ["memory.max", "memory.memsw.limit_in_bytes", "memory.limit_in_bytes"];
  return cgroupRoots().flatMap((root) => names.map((name) => join(root, cgroupPath, name)));
}

/** Sets the memory limit of a cgroup. Throws when the cgroup uses more and the kernel cannot reclaim it. */
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
      // A cgroup is still busy for a moment after its last process has ended.
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

/** "" when the file does not exist. ENODEV means that the cgroup was removed between open and read. */
function isGone(error: unknown): boolean {
  return ["ENOENT", "ENODEV"].includes((error as NodeJS.ErrnoException).code ?? "");
}
