// How fine measurements are, by the length of the range that is read, and by their age. Old measurements are summarised to what a range that
// reaches back to them shows anyway, which bounds the rows of a sandbox: about 4,000 for its first week, and 100 for each day after it.

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

export interface MetricStep {
  readonly stepMs: number;
  /** Ranges shorter than this have this step, and measurements of this age are still stored with it. */
  readonly belowMs: number;
}

export const METRIC_STEPS = [
  { stepMs: 5_000, belowMs: HOUR_MS },
  { stepMs: 30_000, belowMs: 6 * HOUR_MS },
  { stepMs: MINUTE_MS, belowMs: 12 * HOUR_MS },
  { stepMs: 2 * MINUTE_MS, belowMs: DAY_MS },
  { stepMs: 5 * MINUTE_MS, belowMs: 7 * DAY_MS },
  { stepMs: 15 * MINUTE_MS, belowMs: Number.POSITIVE_INFINITY },
] as const satisfies readonly MetricStep[];

export function metricStepOf(rangeMs: number): number {
  return METRIC_STEPS.find(({ belowMs }) => rangeMs < belowMs)?.stepMs ?? METRIC_STEPS[0].stepMs;
}

export interface Summary {
  readonly fromStepMs: number;
  readonly toStepMs: number;
  /** Rows of `fromStepMs` before this time are summarised. A multiple of `toStepMs`, so that no summary is made of a part of its rows. */
  readonly before: number;
}

/** What is to be summarised now. */
export function dueSummaries(now: number): readonly Summary[] {
  return METRIC_STEPS.slice(0, -1).map(({ stepMs, belowMs }, index) => {
    const toStepMs = METRIC_STEPS[index + 1]?.stepMs ?? stepMs;
    return { fromStepMs: stepMs, toStepMs, before: Math.floor((now - belowMs) / toStepMs) * toStepMs };
  });
}
