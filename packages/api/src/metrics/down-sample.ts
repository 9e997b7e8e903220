import { METRIC_STEPS, metricStepOf, type SandboxMetric, type TeamMetric } from "@skerry/store";

export interface TimeRange {
  /** Milliseconds. */
  readonly start: number;
  readonly end: number;
}

/** One value for each step of the range that has any: the average of what was measured in it. */
export function downSample(metrics: readonly SandboxMetric[], { start, end }: TimeRange): readonly SandboxMetric[] {
  const stepMs = metricStepOf(end - start);
  if (stepMs === METRIC_STEPS[0].stepMs) return metrics;
  return [...byStep(metrics, stepMs)].map(([at, some]) => {
    const average = (read: (metric: SandboxMetric) => number) => some.reduce((sum, metric) => sum + read(metric), 0) / some.length;
    const [first] = some;
    return {
      ...first,
      at,
      cpuPercent: Math.ceil(average(({ cpuPercent }) => cpuPercent) * 100) / 100,
      memoryUsedBytes: Math.round(average(({ memoryUsedBytes }) => memoryUsedBytes)),
      memoryCacheBytes: Math.round(average(({ memoryCacheBytes }) => memoryCacheBytes)),
      diskUsedBytes: Math.round(average(({ diskUsedBytes }) => diskUsedBytes)),
    };
  });
}

export interface TeamPoint {
  readonly at: number;
  /** The most sandboxes that ran at once. */
  readonly concurrent: number;
  /** Starts per second. */
  readonly startRate: number;
}

/** One point for each step of the range. A step without rows is one in which the team ran nothing. */
export function downSampleTeam(metrics: readonly TeamMetric[], { start, end }: TimeRange): readonly TeamPoint[] {
  const stepMs = metricStepOf(end - start);
  const steps = new Map(byStep(metrics, stepMs));
  const points: TeamPoint[] = [];
  for (let at = Math.floor(start / stepMs) * stepMs; at <= end; at += stepMs) {
    const some = steps.get(at) ?? [];
    const starts = some.reduce((sum, metric) => sum + metric.starts, 0);
    // Rows of an older age stand for more time than a step of a short range.
    const lengthMs = Math.max(stepMs, ...some.map((metric) => metric.stepMs));
    points.push({ at, concurrent: Math.max(0, ...some.map(({ concurrent }) => concurrent)), startRate: starts / (lengthMs / 1000) });
  }
  return points;
}

function byStep<T extends { readonly at: number }>(metrics: readonly T[], stepMs: number): Map<number, [T, ...T[]]> {
  const steps = new Map<number, [T, ...T[]]>();
  for (const metric of metrics) {
    const at = Math.floor(metric.at / stepMs) * stepMs;
    const some = steps.get(at);
    if (some) some.push(metric);
    else steps.set(at, [metric]);
  }
  return steps;
}
