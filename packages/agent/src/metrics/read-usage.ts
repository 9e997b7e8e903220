// CPU, memory and disk usage of this sandbox, as its runtime shows it inside the sandbox.
//
// In gVisor, /proc describes the sandbox alone. On the host's kernel /proc describes the whole host, and the sandbox's own cgroup
// (v2 or v1) is mounted. CPU usage covers the time since the previous call. A cgroup may use slightly more memory than the sandbox's
// size, because it includes the runtime and the agent.

import { readFile, statfs } from "node:fs/promises";
import { type Memory, parseCpuStat, parseGroupMemory, parseMemInfo, parseQuota } from "./parse.ts";

export interface Usage {
  readonly cpuCount: number;
  /** 0 to 100 over all CPUs, two decimals. */
  readonly cpuUsedPercent: number;
  readonly memoryTotal: number;
  readonly memoryUsed: number;
  readonly memoryCache: number;
  readonly diskTotal: number;
  readonly diskUsed: number;
}

const CGROUP = "/sys/fs/cgroup";
/** USER_HZ, which the kernel's ABI fixes. */
const TICKS_PER_SECOND = 100;

let previous = { atMs: performance.timeOrigin, busySeconds: 0 };

/** `memoryTotal` is the sandbox's memory size in bytes, if /init has set it. */
export async function readUsage(memoryTotal: number | undefined): Promise<Usage> {
  const [cpuCount, busySeconds, memory, disk] = await Promise.all([readCpuCount(), readBusySeconds(), readMemory(), statfs("/")]);
  const atMs = performance.timeOrigin + performance.now();
  const available = ((atMs - previous.atMs) / 1000) * cpuCount;
  const share = available > 0 ? Math.min(Math.max((busySeconds - previous.busySeconds) / available, 0), 1) : 0;
  previous = { atMs, busySeconds };
  const total = memoryTotal ?? memory.total;
  return {
    cpuCount,
    cpuUsedPercent: Math.round(share * 10_000) / 100,
    memoryTotal: total,
    memoryUsed: Math.min(memory.used, total),
    memoryCache: memory.cache,
    diskTotal: disk.blocks * disk.bsize,
    diskUsed: (disk.blocks - disk.bavail) * disk.bsize,
  };
}

async function readCpuCount(): Promise<number> {
  const processors = ((await readText("/proc/cpuinfo")) ?? "").match(/^processor\s*:/gm)?.length ?? 1;
  const v2 = await readText(`${CGROUP}/cpu.max`);
  const v1Quota = await readText(`${CGROUP}/cpu/cpu.cfs_quota_us`);
  const v1Period = await readText(`${CGROUP}/cpu/cpu.cfs_period_us`);
  const quota = parseQuota(v2 ?? `${v1Quota ?? "max"} ${v1Period ?? ""}`);
  return quota === undefined ? processors : Math.min(processors, Math.max(1, Math.ceil(quota)));
}

async function readBusySeconds(): Promise<number> {
  const v2 = /^usage_usec (\d+)/m.exec((await readText(`${CGROUP}/cpu.stat`)) ?? "");
  if (v2) return Number(v2[1]) / 1e6;
  const v1 = await readText(`${CGROUP}/cpuacct/cpuacct.usage`);
  if (v1) return Number(v1) / 1e9;
  return parseCpuStat((await readText("/proc/stat")) ?? "") / TICKS_PER_SECOND;
}

async function readMemory(): Promise<Memory> {
  const v2 = await readGroup(CGROUP, { limit: "memory.max", current: "memory.current" });
  const v1 = v2 ?? (await readGroup(`${CGROUP}/memory`, { limit: "memory.limit_in_bytes", current: "memory.usage_in_bytes" }));
  const host = parseMemInfo((await readText("/proc/meminfo")) ?? "");
  // A limit above the host's memory has no effect.
  return v1 && v1.total < host.total ? v1 : host;
}

async function readGroup(folder: string, names: { limit: string; current: string }): Promise<Memory | undefined> {
  const [limit = "", current = "", stat = ""] = await Promise.all(
    [names.limit, names.current, "memory.stat"].map((name) => readText(`${folder}/${name}`)),
  );
  return parseGroupMemory({ limit, current, stat });
}

async function readText(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch {
    // This kernel or runtime does not have the file. The caller tries the next source.
    return undefined;
  }
}
