export interface Memory {
  readonly total: number;
  /** Without page cache, which is given back when somebody wants the memory. */
  readonly used: number;
  readonly cache: number;
}

/** Bytes, from /proc/meminfo. */
export function parseMemInfo(text: string): Memory {
  const field = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(text)?.[1] ?? 0) * 1024;
  const total = field("MemTotal");
  const cache = field("Cached") + field("SReclaimable");
  // gVisor does not count cache as available: there both are the same, and mapped files would be "used".
  const available = field("MemAvailable") === field("MemFree") ? field("MemFree") + cache : field("MemAvailable");
  return { total, used: total - available, cache };
}

/** From the files of a memory cgroup, version 1 or 2; undefined without a limit. */
export function parseGroupMemory(files: { limit?: string; current?: string; stat?: string }): Memory | undefined {
  const { limit = "", current = "", stat = "" } = files;
  if (!/^\d+\s*$/.test(limit) || !/^\d+\s*$/.test(current)) return undefined;
  // The totals of version 1 include child groups; the plain fields there do not. Shared memory is no cache: nothing can give it back.
  const field = (name: string) =>
    Number((new RegExp(`^total_${name} (\\d+)`, "m").exec(stat) ?? new RegExp(`^${name} (\\d+)`, "m").exec(stat))?.[1] ?? 0);
  const cache = field("active_file") + field("inactive_file");
  return { total: Number(limit), used: Math.max(0, Number(current) - cache), cache };
}

/** Busy ticks of all CPUs, from the first line of /proc/stat: total without idle, iowait, and guest time (counted in user time already). */
export function parseCpuStat(text: string): number {
  const fields = /^cpu\s+(.*)$/m.exec(text)?.[1]?.trim().split(/\s+/).map(Number) ?? [];
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = fields;
  return user + nice + system + irq + softirq + steal;
}

/** CPUs, from "quota period" in microseconds; undefined without a limit. */
export function parseQuota(text: string): number | undefined {
  const [quota = "", period = ""] = text.trim().split(/\s+/);
  if (!/^\d+$/.test(quota) || !/^\d+$/.test(period) || Number(period) === 0) return undefined;
  return Number(quota) / Number(period);
}
