/** The state that a workload reports. */
export interface Check {
  /** Made when the workload started, from random numbers and its process ids. A different identity means that it was restarted. */
  readonly identity: string;
  /** Hashes of its memory and files, computed for each check. */
  readonly memory: string;
  readonly files: string;
  /** Increases as long as the workload runs. */
  readonly ticks: number;
  readonly clockMs: number;
  /** A new random number of the kernel. */
  readonly random: string;
  readonly mark: string;
  /** What has gone wrong since the start, in the workload's words. */
  readonly problems: readonly string[];
}

/** When the check started and ended, by the host's clock. */
export interface Asked {
  readonly fromMs: number;
  readonly toMs: number;
}

/** A difference from the expected state. */
export class SoakDifference extends Error {
  override readonly name = "SoakDifference";
}

/** Tolerance of the clock comparison, for rounding and a busy host. */
const CLOCK_TOLERANCE_MS = 1_000;

export function parseCheck(text: string): Check {
  let check: Partial<Check>;
  try {
    check = JSON.parse(text) as Partial<Check>;
  } catch {
    throw new SoakDifference(`the answer is not JSON: ${text.slice(0, 300)}`);
  }
  if (check.problems?.length) throw new SoakDifference(check.problems.slice(0, 5).join("; "));
  for (const name of ["identity", "memory", "files", "random"] as const) {
    if (typeof check[name] !== "string" || check[name].length < 16)
      throw new SoakDifference(`the answer has no ${name}: ${text.slice(0, 300)}`);
  }
  if (!Number.isInteger(check.ticks) || typeof check.clockMs !== "number") throw new SoakDifference(`the answer has no ticks or no clock`);
  return check as Check;
}

/** Random numbers of all sandboxes of a run. None may occur twice. */
export type Seen = Set<string>;

/** Throws SoakDifference at the first difference. `before` is the last check of the workload or of its parent. */
export function compare(before: Check, now: Check, context: { readonly asked: Asked; readonly seen: Seen; readonly mark: string }): void {
  const { asked, seen, mark } = context;
  for (const name of ["identity", "memory", "files"] as const) {
    if (now[name] !== before[name]) throw new SoakDifference(`${name} changed from "${before[name]}" to "${now[name]}"`);
  }
  if (now.mark !== mark) throw new SoakDifference(`mark is "${now.mark}" instead of "${mark}"`);
  if (now.ticks <= before.ticks) throw new SoakDifference(`the counter did not increase: ${before.ticks}, then ${now.ticks}`);
  if (now.clockMs < asked.fromMs - CLOCK_TOLERANCE_MS || now.clockMs > asked.toMs + CLOCK_TOLERANCE_MS) {
    throw new SoakDifference(`the clock is wrong by ${Math.round(now.clockMs - asked.toMs)} ms`);
  }
  if (seen.has(now.random)) throw new SoakDifference(`the kernel returned the random number ${now.random} twice`);
  seen.add(now.random);
}
