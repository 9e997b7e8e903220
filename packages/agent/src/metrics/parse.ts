export interface Memory {
  readonly total: number;
  /** Without the page cache, which the kernel frees on demand. */
  readonly used: number;
  readonly cache: number;
}

/** Bytes, from /proc/meminfo. */
export function parseMemInfo(text: string): Memory {
  const field = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(text)?.[1] ?? 0) * 1024;
  const total = field("MemTotal");
  const cache = field("Cached") + field("SReclaimable");
  // In gVisor both fields are equal: it does not count the cache as available, so mapped files would appear as used.
  const available = field("MemAvailable") === field("MemFree") ? field("MemFree") + cache : field("MemAvailable");
  return { total, used: total - available, cache };
}

/** From the files of a memory cgroup, version 1 or 2; undefined without a limit. */
export function parseGroupMemory(files: { limit?: string; current?: string; stat?: string }): Memory | undefined {
  const { limit = "", current = "", stat = "" } = files;
  if (!/^\d+\s*$/.test(limit) || !/^\d+\s*$/.test(current)) return undefined;
  // In version 1 only the total_ fields include child groups. Shared memory is not counted as cache, because the kernel cannot drop it.
  const field = (name: string) =>
    Number((new RegExp(`^total_${name} (\\d+)`, "m").exec(stat) ?? new RegExp(`^${name} (\\d+)`, "m").exec(stat))?.[1] ?? 0);
  const cache = field("active_file") + field("inactive_file");
  return { total: Number(limit), used: Math.max(0, Number(current) - cache), cache };
}

/** Busy ticks of all CPUs, from the first line of /proc/stat: all but idle, iowait, and guest time, which user time includes. */
export function parseCpuStat(text: string): number {
  const fields = /^cpu\s+(.*)$/m.exec(text)?.[1]?.trim().split(/\s+/).map(Number) ?? [];
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = fields;
  return user + nice + system + irq + softirq + steal;
}

/** Number of CPUs, from "quota period" in microseconds; undefined without a limit. */
export function parseQuota(text: string): number | undefined {
  const [quota = "", period = ""] = text.trim().split(/\s+/);
  if (!/^\d+$/.test(quota) || !/^\d+$/.test(period) || Number(period) === 0) return undefined;
  return Number(quota) / Number(period);
}
