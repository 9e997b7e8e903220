export interface CpuReading {
  readonly atMs: number;
  readonly cpuSeconds: number;
}

/**
 * The share of all CPUs that was used between two readings, 0 to 100 with two decimals. It is rounded up: clients take 0 for "not measured yet",
 * and an idle sandbox uses a little.
 */
export function cpuPercent(before: CpuReading, now: CpuReading, cpuCount: number): number {
  const available = ((now.atMs - before.atMs) / 1000) * cpuCount;
  const used = now.cpuSeconds - before.cpuSeconds;
  if (available <= 0 || used <= 0) return 0;
  return Math.min(Math.ceil((used / available) * 10_000) / 100, 100);
}
