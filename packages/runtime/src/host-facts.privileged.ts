import { existsSync, readFileSync } from "node:fs";
import type { HostFacts } from "./spec/build-spec.ts";

/** A guest can use more, but the tables of the kernel that many open files need are the host's memory. */
const MAX_OPEN_FILES = 1_048_576;

// Version 1 has the file only on kernels that account for swap; version 2 always does.
const SWAP_LIMIT_V1 = "/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes";
const CGROUP_V2 = "/sys/fs/cgroup/cgroup.controllers";

/** What the host could give to processes without swapping. */
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
  };
}
