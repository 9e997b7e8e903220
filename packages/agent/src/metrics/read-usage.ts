// What this sandbox uses, as far as its runtime shows it in here.
//
// gVisor's /proc speaks of the sandbox alone. In a container of the host's kernel /proc speaks of the whole machine, so
// the cgroup (v2 or v1) comes first where its limits are visible. CPU shares are since the previous call.

import { readdir, readFile, statfs } from "node:fs/promises";
import { parseCpuStat, parseMemInfo, parseProcessTicks, parseQuota } from "./parse.ts";

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

export async function readUsage(): Promise<Usage> {
  const [cpuCount, busySeconds, memory, disk] = await Promise.all([readCpuCount(), readBusySeconds(), readMemory(), statfs("/")]);
  const atMs = performance.timeOrigin + performance.now();
  const available = ((atMs - previous.atMs) / 1000) * cpuCount;
  const share = available > 0 ? Math.min(Math.max((busySeconds - previous.busySeconds) / available, 0), 1) : 0;
  previous = { atMs, busySeconds };
  return {
    cpuCount,
    cpuUsedPercent: Math.round(share * 10_000) / 100,
    ...memory,
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
  const busyTicks = parseCpuStat((await readText("/proc/stat")) ?? "");
  if (busyTicks > 0) return busyTicks / TICKS_PER_SECOND;
  return (await readProcessTicks()) / TICKS_PER_SECOND;
}

// gVisor keeps no total: what the living have used, and what those that were waited for had used, is the next best.
async function readProcessTicks(): Promise<number> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const stats = await Promise.all(pids.map((pid) => readText(`/proc/${pid}/stat`)));
  return stats.reduce((total, stat) => total + (stat === undefined ? 0 : parseProcessTicks(stat)), 0);
}

async function readMemory(): Promise<Pick<Usage, "memoryTotal" | "memoryUsed" | "memoryCache">> {
  const info = parseMemInfo((await readText("/proc/meminfo")) ?? "");
  const group = (await readCgroupV2Memory()) ?? (await readCgroupV1Memory());
  if (group && group.limit < info.total) {
    // Page cache counts as the group's until somebody wants the memory, so it is not "used".
    return { memoryTotal: group.limit, memoryUsed: Math.max(0, group.current - group.cache), memoryCache: group.cache };
  }
  return { memoryTotal: info.total, memoryUsed: info.total - info.available, memoryCache: info.cache };
}

interface GroupMemory {
  readonly limit: number;
  readonly current: number;
  readonly cache: number;
}

async function readCgroupV2Memory(): Promise<GroupMemory | undefined> {
  const [limit, current, stat] = await Promise.all(
    ["memory.max", "memory.current", "memory.stat"].map((name) => readText(`${CGROUP}/${name}`)),
  );
  return groupMemory(limit, current, /^file (\d+)/m.exec(stat ?? "")?.[1]);
}

async function readCgroupV1Memory(): Promise<GroupMemory | undefined> {
  const folder = `${CGROUP}/memory`;
  const names = ["memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat"];
  const [limit, current, stat] = await Promise.all(names.map((name) => readText(`${folder}/${name}`)));
  return groupMemory(limit, current, /^total_cache (\d+)/m.exec(stat ?? "")?.[1]);
}

function groupMemory(limit: string | undefined, current: string | undefined, cache: string | undefined): GroupMemory | undefined {
  if (limit === undefined || current === undefined || !/^\d+\s*$/.test(limit)) return undefined;
  return { limit: Number(limit), current: Number(current), cache: Number(cache ?? 0) };
}

async function readText(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch {
    // Another kernel, another runtime, a process that ended: the next source is asked.
    return undefined;
  }
}
