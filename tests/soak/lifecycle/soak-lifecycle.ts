import { setTimeout as sleep } from "node:timers/promises";
import { type Platform, startPlatform } from "@skerry/testkit";
import { leftoversOf, residentBytes } from "./leftovers.ts";
import { runLifecycle, type Step } from "./run-lifecycle.ts";

/** Steps before memory is measured first, so that one-time allocations are included. */
const WARM_UP_STEPS = 40;
const MIB = 2 ** 20;
/** Growth of the platform's memory that is allowed after its first steps: heaps grow with use and do not shrink completely. */
const MEMORY_GROWTH = { share: 0.35, bytes: 48 * MIB };
/** Time in which an idle platform must release memory. */
const SETTLE_MS = 20_000;
/** Time without a decrease after which memory counts as settled. A collection starts after 2.5 s without work and takes a second. */
const STILL_MS = 5_000;

export interface LifecycleSoak {
  readonly steps: number;
  readonly atOnce: number;
  readonly seed: number;
  readonly runtime: "gvisor" | "runc";
  readonly signal: AbortSignal;
  readonly onProgress: (line: string) => void;
}

export interface LifecycleResult {
  readonly steps: Readonly<Record<Step, { count: number; p50Ms: number; p99Ms: number }>>;
  readonly durationMs: number;
  readonly memoryMb: { readonly afterWarmUp: number; readonly atMost: number; readonly atEnd: number };
}

/** Runs on a platform of its own, with a pool. Throws if a step fails, if anything is left, or if memory is not released. */
export async function soakLifecycle(soak: LifecycleSoak): Promise<LifecycleResult> {
  const { atOnce, seed, runtime, signal, onProgress } = soak;
  const startedAt = performance.now();
  const durations: Record<Step, number[]> = { create: [], pause: [], resume: [], kill: [] };
  await using platform = await startPlatform({ runtime, env: { SKERRY_POOL_SIZE: "2" } });
  let done = 0;
  let most = 0;
  const report = Math.max(20, Math.ceil(soak.steps / 100));
  const plan = {
    atOnce,
    keepsMemory: runtime === "gvisor",
    signal,
    onStep: (step: Step, durationMs: number) => {
      durations[step].push(durationMs);
      done += 1;
      if (done % report !== 0) return;
      most = Math.max(most, residentBytes(platform));
      onProgress(`${done} of ${soak.steps} steps, ${Math.round(residentBytes(platform) / MIB)} MiB, ${perSecond(done, startedAt)} steps/s`);
    },
  };
  const warmUp = Math.min(WARM_UP_STEPS, soak.steps);
  await runLifecycle(platform, { ...plan, steps: warmUp, seed });
  const before = await settledBytes(platform, signal);
  await runLifecycle(platform, { ...plan, steps: soak.steps - warmUp, seed: seed + atOnce });
  const after = await settledBytes(platform, signal);
  onProgress("all steps done; looking for leftovers");
  const allowed = before * (1 + MEMORY_GROWTH.share) + MEMORY_GROWTH.bytes;
  if (after > allowed) throw new Error(`memory was not released: ${mb(before)} MiB after the first steps, ${mb(after)} MiB at the end`);
  await platform.stop();
  const left = await leftoversOf(platform);
  if (left.length > 0) throw new Error(`leftovers:\n  ${left.join("\n  ")}`);
  return {
    steps: {
      create: summary(durations.create),
      pause: summary(durations.pause),
      resume: summary(durations.resume),
      kill: summary(durations.kill),
    },
    durationMs: Math.round(performance.now() - startedAt),
    memoryMb: { afterWarmUp: mb(before), atMost: mb(Math.max(most, after)), atEnd: mb(after) },
  };
}

/** Resident memory of the idle platform: the minimum, once it has not decreased for STILL_MS. */
async function settledBytes(platform: Platform, signal: AbortSignal): Promise<number> {
  const startedAt = performance.now();
  let least = residentBytes(platform);
  let leastAt = startedAt;
  while (performance.now() - leastAt < STILL_MS && performance.now() - startedAt < SETTLE_MS) {
    await sleep(250, undefined, { signal });
    const bytes = residentBytes(platform);
    if (bytes >= least) continue;
    least = bytes;
    leastAt = performance.now();
  }
  return least;
}

function perSecond(count: number, startedAt: number): string {
  return ((count * 1000) / (performance.now() - startedAt)).toFixed(1);
}

function mb(bytes: number): number {
  return Math.round(bytes / MIB);
}

function summary(durations: readonly number[]): { count: number; p50Ms: number; p99Ms: number } {
  const sorted = durations.toSorted((a, b) => a - b);
  const at = (share: number) => Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0);
  return { count: sorted.length, p50Ms: at(0.5), p99Ms: at(0.99) };
}
