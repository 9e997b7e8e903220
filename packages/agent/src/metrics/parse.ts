/** Bytes, from /proc/meminfo. */
export function parseMemInfo(text: string): { total: number; available: number; cache: number } {
  const field = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(text)?.[1] ?? 0) * 1024;
  return { total: field("MemTotal"), available: field("MemAvailable"), cache: field("Cached") + field("SReclaimable") };
}

/** Busy ticks of all CPUs, from the first line of /proc/stat: total without idle, iowait, and guest time (counted in user time already). */
export function parseCpuStat(text: string): number {
  const fields = /^cpu\s+(.*)$/m.exec(text)?.[1]?.trim().split(/\s+/).map(Number) ?? [];
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = fields;
  return user + nice + system + irq + softirq + steal;
}

/** Ticks of one process and of its children that were waited for, from /proc/PID/stat. The name may hold spaces and parentheses. */
export function parseProcessTicks(stat: string): number {
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return [11, 12, 13, 14].reduce((total, index) => total + Number(fields[index] ?? 0), 0);
}

/** CPUs, from "quota period" in microseconds; undefined without a limit. */
export function parseQuota(text: string): number | undefined {
  const [quota = "", period = ""] = text.trim().split(/\s+/);
  if (!/^\d+$/.test(quota) || !/^\d+$/.test(period) || Number(period) === 0) return undefined;
  return Number(quota) / Number(period);
}
