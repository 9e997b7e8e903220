// What sandboxes use of the host: memory and disk, in MiB.

import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

/** MemAvailable of the host. */
export function availableMiB(): number {
  return Number(/^MemAvailable:\s+(\d+) kB/m.exec(readFileSync("/proc/meminfo", "utf8"))?.[1]) / 1024;
}

/**
 * Memory of the processes whose command line or cgroup matches. Shared pages count in parts (PSS). Other programs don't disturb this
 * figure, but it does not include the kernel's memory.
 */
export function processMemoryMiB(belongs: RegExp): number {
  let kib = 0;
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const text = (file: string) => readFileSync(`/proc/${pid}/${file}`, "utf8");
      if (!belongs.test(text("cmdline").replaceAll("\0", " ")) && !belongs.test(text("cgroup"))) continue;
      kib += pssKiB(pid);
    } catch {
      // The process has just ended.
    }
  }
  return kib / 1024;
}

/** The same of these processes. */
export function memoryOfMiB(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + pssKiB(pid), 0) / 1024;
}

function pssKiB(pid: string | number): number {
  return Number(/^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))?.[1] ?? 0);
}

/** CPU time that these processes have used so far, in the kernel too. Their children do not count. */
export function cpuSeconds(pids: readonly number[]): number {
  const ticksOf = (pid: number) => {
    const afterName = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.split(" ") ?? [];
    return Number(afterName[11]) + Number(afterName[12]);
  };
  return pids.reduce((sum, pid) => sum + ticksOf(pid), 0) / 100;
}

/** Disk space of the files below a folder. Holes of sparse files do not count. */
export function diskMiB(dir: string): number {
  let blocks = 0;
  for (const entry of readdirSync(dir, { withFileTypes: true, recursive: true })) {
    if (entry.isFile()) blocks += statSync(join(entry.parentPath, entry.name)).blocks;
  }
  return (blocks * 512) / 1024 / 1024;
}
