import type { BuildTrail, TrailStep } from "./cache/step-cache.ts";

export interface MissedStep {
  readonly index: number;
  readonly step: TrailStep;
  readonly isForced: boolean;
  /** Of the template's last build. */
  readonly before: BuildTrail | undefined;
}

/** The key of a step in a trail that did not succeed. */
export const FAILED_KEY = "";

/** Why a step is not cached, in words for the log. */
export function whyNotCached({ index, step, isForced, before }: MissedStep): string {
  if (isForced) return "forced";
  const last = before?.[index];
  if (!before) return "first build of this template";
  if (!last) return "first build of this step";
  if (last.key === step.key) return "its cached result is gone";
  if (last.type !== step.type) return "the step changed";
  if (last.args !== step.args) return step.type === "RUN" ? "the command changed" : "the arguments changed";
  if (last.filesHash !== step.filesHash) return "the files changed";
  if (last.state !== step.state) return index === 0 ? "what it is based on changed" : "an earlier step or what it is based on changed";
  return last.key === FAILED_KEY ? "it failed in the last build" : "first build of this step";
}
