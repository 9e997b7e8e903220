import { existsSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import type { HostFacts } from "./spec/build-spec.ts";

/** Upper bound of open files of a sandbox. Their tables in the kernel take memory of the host. */
const MAX_OPEN_FILES = 1_048_576;

// In version 1 the file exists only on kernels that account for swap. Version 2 always accounts for swap.
const SWAP_LIMIT_V1 = "/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes";
const CGROUP_V2 = "/sys/fs/cgroup/cgroup.controllers";

/** Memory that the host can give to processes without swapping. */
export function availableMemoryBytes(): number {
  const kilobytes = /^MemAvailable: +(\d+) kB$/m.exec(readFileSync("/proc/meminfo", "utf8"))?.[1];
  return Number(kilobytes ?? 0) * 1024;
}

export function readHostFacts(limits: string = readFileSync("/proc/self/limits", "utf8")): HostFacts {
  const line = limits.split("\n").find((one) => one.startsWith("Max open files"));
  const hard = line?.trim().split(/\s{2,}/)[2];
  const parsed = hard === "unlimited" ? MAX_OPEN_FILES : Number(hard);
  if (!Number.isSafeInteger(parsed)) throw new Error(`no limit of open files in /proc/self/limits: ${line}`);
  return {
    arch: process.arch,
    maxOpenFiles: Math.min(parsed, MAX_OPEN_FILES),
    limitsSwap: existsSync(SWAP_LIMIT_V1) || existsSync(CGROUP_V2),
    diskPaths: diskPaths(),
  };
}

/** Folders in /sys of the devices behind the disks of the host. They contain serial numbers, which a mask of /sys/block does not hide. */
function diskPaths(): string[] {
  const disks = namesIn("/sys/block").map((name) => `/sys/block/${name}/device`);
  const controllers = namesIn("/sys/class/nvme").map((name) => `/sys/class/nvme/${name}`);
  return [...new Set([...disks, ...controllers].filter((path) => existsSync(path)).map((path) => realpathSync(path)))];
}

function namesIn(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder) : [];
}
