// Control groups as they lie on disk, for both versions and the hybrid of them: a sandbox's group may exist under
// several hierarchies at once. Limits themselves go through the OCI specification; here they are emptied and removed.

import { existsSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Mount points of every cgroup hierarchy of this machine. */
export function cgroupRoots(mounts: string = readFileSync("/proc/self/mounts", "utf8")): string[] {
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
  const deadline = Date.now() + timeoutMs;
  for (let pids = cgroupProcesses(cgroupPath); pids.length > 0; pids = cgroupProcesses(cgroupPath)) {
    for (const pid of pids) killIfThere(pid);
    if (Date.now() > deadline) throw new Error(`processes ${pids.slice(0, 10).join(", ")} in cgroup ${cgroupPath} do not end`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  for (const root of cgroupRoots()) await removeGroup(join(root, cgroupPath), deadline);
}

/** Child groups of a group, by name, over all hierarchies. */
export function listCgroups(cgroupPath: string): string[] {
  return [...new Set(cgroupRoots().flatMap((root) => childGroups(join(root, cgroupPath))))];
}

/** Changes the memory limit of a group that has one. */
export function setMemoryLimit(cgroupPath: string, bytes: number): void {
  const files = cgroupRoots()
    .flatMap((root) => ["memory.max", "memory.limit_in_bytes"].map((name) => join(root, cgroupPath, name)))
    .filter((file) => existsSync(file));
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
      if (code !== "EBUSY" || Date.now() > deadline) throw error;
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
