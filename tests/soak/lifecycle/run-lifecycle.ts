// Takes several sandboxes at once through create, pause, resume and kill in a random order. Each has a mark on its disk and in its memory
// that must survive every step.

import type { Platform } from "@skerry/testkit";
import { type Guest, guestOf } from "./guest.ts";
import { randomFrom } from "./random.ts";

export type Step = "create" | "pause" | "resume" | "kill";

export interface LifecyclePlan {
  readonly steps: number;
  readonly atOnce: number;
  readonly seed: number;
  /** Whether the runtime keeps memory over a pause. */
  readonly keepsMemory: boolean;
  readonly signal: AbortSignal;
  /** Called after each step. */
  readonly onStep: (step: Step, durationMs: number) => void;
}

interface State {
  readonly guest: Guest;
  paused: boolean;
}

/** Kills every sandbox at the end. Throws if a step fails or loses anything. */
export async function runLifecycle(platform: Platform, plan: LifecyclePlan): Promise<void> {
  let begun = 0;
  let failed = false;
  const isOver = () => begun >= plan.steps || failed || plan.signal.aborted;
  const worker = async (number: number) => {
    const random = randomFrom(plan.seed + number);
    let state: State | undefined;
    try {
      while (!isOver()) {
        begun += 1;
        state = await take(platform, plan, chooseStep(state, random()), state);
      }
      if (state) await state.guest.kill();
    } catch (error) {
      failed = true;
      throw error;
    }
  };
  const results = await Promise.allSettled(Array.from({ length: plan.atOnce }, (_, number) => worker(number)));
  const failures = results.flatMap((result) => (result.status === "rejected" ? [result.reason as Error] : []));
  if (failures.length > 0) throw new AggregateError(failures, failures.map(({ message }) => message).join("; "));
}

/** Chooses the next step. Kills are rare, so that most sandboxes go through several pauses. */
export function chooseStep(state: Pick<State, "paused"> | undefined, random: number): Step {
  if (!state) return "create";
  if (random < 0.2) return "kill";
  return state.paused ? "resume" : "pause";
}

async function take(platform: Platform, plan: LifecyclePlan, step: Step, state: State | undefined): Promise<State | undefined> {
  const startedAt = performance.now();
  const done = () => plan.onStep(step, performance.now() - startedAt);
  if (step === "create" || !state) {
    const guest = await guestOf(platform);
    done();
    await guest.mark();
    return { guest, paused: false };
  }
  const { guest } = state;
  if (step === "kill") {
    await guest.kill();
    done();
    return undefined;
  }
  if (step === "pause") await guest.pause();
  else await guest.resume();
  done();
  if (step === "resume") await guest.check({ memory: plan.keepsMemory });
  return { guest, paused: step === "pause" };
}
