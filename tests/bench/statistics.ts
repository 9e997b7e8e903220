export interface Distribution {
  readonly count: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly min: number;
  readonly max: number;
}

/** Nearest-rank percentiles: every figure is a measured sample. */
export function distribution(samples: readonly number[]): Distribution {
  if (samples.length === 0) throw new Error("no samples");
  const sorted = [...samples].sort((a, b) => a - b);
  const at = (share: number) => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
  return { count: sorted.length, p50: at(0.5), p95: at(0.95), p99: at(0.99), min: at(0), max: at(1) };
}

export async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

/** Milliseconds of each round, after two rounds that do not count. */
export async function repeated(rounds: number, once: () => Promise<unknown>): Promise<number[]> {
  const taken: number[] = [];
  for (let round = -2; round < rounds; round++) {
    const elapsed = await timed(once);
    if (round >= 0) taken.push(elapsed);
  }
  return taken;
}

/** Parses the numbers that a program printed, one per line. */
export function samplesOf(output: string): number[] {
  return output.trim().split("\n").map(Number);
}
