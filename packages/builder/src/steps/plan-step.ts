import type { StepContext } from "../context.ts";
import { planCopy } from "./copy.ts";
import { planEnv } from "./env.ts";
import { planRun } from "./run.ts";
import { type PlanStep, type Step, StepFailure, type StepPlan } from "./step.ts";
import { planUser } from "./user.ts";
import { planWorkdir } from "./workdir.ts";

const PLANS: Readonly<Record<string, PlanStep>> = {
  ADD: planCopy,
  ARG: planEnv,
  COPY: planCopy,
  ENV: planEnv,
  RUN: planRun,
  USER: planUser,
  WORKDIR: planWorkdir,
};

/** Throws StepFailure. */
export function planStep(step: Step, context: StepContext): StepPlan {
  const plan = Object.hasOwn(PLANS, step.type) ? PLANS[step.type] : undefined;
  if (!plan) throw new StepFailure(`failed to get command for step ${step.type}: command type ${step.type} is not implemented`);
  return plan(step, context);
}
