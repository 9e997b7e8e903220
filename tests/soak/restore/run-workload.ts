import { readFileSync } from "node:fs";
import { asError } from "@skerry/base";
import type { Platform } from "@skerry/testkit";
import { distribution } from "../../bench/statistics.ts";
import type { Seen } from "./check.ts";
import { Subject } from "./subject.ts";
import type { Workload } from "./workloads.ts";

export interface SoakPlan {
  readonly cycles: number;
  readonly forks: number;
}

export interface Cycle {
  readonly pauseMs: number;
  /** `resumeMs`: until the platform reported it as running. `checkMs`: from then until its check passed. */
  readonly resumeMs: number;
  readonly checkMs: number;
  readonly imageBytes: number;
}

export interface WorkloadResult {
  readonly workload: string;
  /** From the create to its first answer. */
  readonly startMs: number;
  readonly cycles: readonly Cycle[];
  /** Number of forks at once, and the time until all of them ran. */
  readonly forks: readonly { readonly count: number; readonly forkMs: number }[];
  /** The first difference, with lines of the logs. */
  readonly failure?: { readonly at: string; readonly difference: string; readonly found: readonly string[] };
}

export interface SoakContext {
  readonly platform: Platform;
  readonly template: { readonly alias: string; readonly memoryMB: number };
  readonly plan: SoakPlan;
  readonly seen: Seen;
  readonly signal: AbortSignal;
  readonly report: (workload: Workload, text: string) => void;
}

const MAX_FORKS_AT_ONCE = 16;

/** Runs the workloads, `parallel` at a time. Returns the results in the order of the workloads. */
export async function runWorkloads(workloads: readonly Workload[], parallel: number, context: SoakContext): Promise<WorkloadResult[]> {
  const results = new Map<Workload, WorkloadResult>();
  const waiting = [...workloads];
  const work = async () => {
    for (let workload = waiting.shift(); workload; workload = waiting.shift()) {
      context.signal.throwIfAborted();
      results.set(workload, await runWorkload(workload, context));
    }
  };
  await Promise.all(Array.from({ length: parallel }, work));
  return workloads.flatMap((workload) => results.get(workload) ?? []);
}

/** Takes one workload through its cycles and forks. The result contains a failure; only an interruption is thrown. */
async function runWorkload(workload: Workload, context: SoakContext): Promise<WorkloadResult> {
  const result = { workload: workload.name, startMs: 0, cycles: [] as Cycle[], forks: [] as { count: number; forkMs: number }[] };
  let at = "start";
  let subject: Subject | undefined;
  const forked: Subject[] = [];
  try {
    const startedAt = performance.now();
    subject = await Subject.start(workload, context.template.alias, context);
    result.startMs = performance.now() - startedAt;
    context.report(workload, `started in ${seconds(result.startMs)}`);
    for (let cycle = 1; cycle <= context.plan.cycles; cycle++) {
      at = `cycle ${cycle}`;
      context.signal.throwIfAborted();
      result.cycles.push(await runCycle(subject, cycle === context.plan.cycles));
      reportCycles(workload, context, result.cycles);
    }
    for (let done = 0; done < context.plan.forks; ) {
      context.signal.throwIfAborted();
      const count = Math.min(context.plan.forks - done, forksAtOnce(context.template.memoryMB));
      at = `forks ${done + 1} to ${done + count}`;
      result.forks.push({ count, forkMs: await runForks(subject, count, forked) });
      done += count;
      context.report(
        workload,
        `fork ${done}/${context.plan.forks}: ${count} in ${seconds(result.forks.at(-1)?.forkMs ?? 0)}, all checks passed`,
      );
    }
    return result;
  } catch (error) {
    const suspect = error instanceof ForkFailed ? error.fork : subject;
    const found = suspect ? await suspect.explain() : [];
    const difference = asError(error).message;
    // On an interruption, everything fails because the platform stops.
    context.signal.throwIfAborted();
    context.report(workload, `FAILED at ${at}: ${difference}`);
    return { ...result, failure: { at, difference, found } };
  } finally {
    for (const one of [...forked, ...(subject ? [subject] : [])]) await one.kill().catch(() => {});
  }
}

async function runCycle(subject: Subject, isLast: boolean): Promise<Cycle> {
  const pauseMs = await timed(() => subject.pause());
  const imageBytes = subject.imageBytes();
  const resumeMs = await timed(() => subject.resume());
  const checkMs = await timed(() => subject.check(isLast));
  return { pauseMs, imageBytes, resumeMs, checkMs };
}

/** Forks the parent and checks all forks at once, then changes each and checks them again: none may see changes of another. */
async function runForks(parent: Subject, count: number, forked: Subject[]): Promise<number> {
  const forkMs = await timed(async () => {
    forked.push(...(await parent.fork(count)));
  });
  await inEach(forked, (fork) => fork.check());
  await inEach(forked, (fork) => fork.setMark(fork.sandboxId));
  await inEach(forked, (fork) => fork.check(fork === forked[0]));
  await parent.check();
  for (const fork of forked.splice(0)) await fork.kill();
  return forkMs;
}

class ForkFailed extends Error {
  override readonly name = "ForkFailed";
  readonly fork: Subject;

  constructor(fork: Subject, cause: unknown) {
    super(asError(cause).message, { cause });
    this.fork = fork;
  }
}

/** Runs `work` in all forks at once. Throws the first failure. */
async function inEach(forks: readonly Subject[], work: (fork: Subject) => Promise<void>): Promise<void> {
  const failures = await Promise.all(
    forks.map((fork) =>
      work(fork).then(
        () => undefined,
        (error: unknown) => new ForkFailed(fork, error),
      ),
    ),
  );
  const first = failures.find((failure) => failure !== undefined);
  if (first) throw first;
}

/** The number of forks that fit into two thirds of the available memory. */
function forksAtOnce(memoryMB: number): number {
  const availableKb = Number(/^MemAvailable:\s+(\d+)/m.exec(readFileSync("/proc/meminfo", "utf8"))?.[1] ?? 0);
  return Math.max(1, Math.min(MAX_FORKS_AT_ONCE, Math.floor((availableKb / 1024 / memoryMB) * (2 / 3))));
}

/** Reports the figures so far: after each of a few cycles, or after each tenth of many. */
function reportCycles(workload: Workload, { plan, report }: SoakContext, cycles: readonly Cycle[]): void {
  const step = plan.cycles <= 10 ? 1 : Math.ceil(plan.cycles / 10);
  if (cycles.length % step !== 0 && cycles.length !== plan.cycles) return;
  const span = (of: (cycle: Cycle) => number) => {
    const { p50, max } = distribution(cycles.map(of));
    return `p50 ${seconds(p50)} max ${seconds(max)}`;
  };
  const times = `pause ${span(({ pauseMs }) => pauseMs)}, resume ${span(({ resumeMs }) => resumeMs)}, check ${span(({ checkMs }) => checkMs)}`;
  report(workload, `cycle ${cycles.length}/${plan.cycles}: ${times}, image ${mebibytes(cycles.at(-1)?.imageBytes ?? 0)} MiB`);
}

export const mebibytes = (bytes: number) => Math.round(bytes / 1024 / 1024);
export const seconds = (ms: number) => `${(ms / 1000).toFixed(2)} s`;

async function timed(work: () => Promise<void>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}
