/** What a workload says of itself. */
export interface Check {
  /** Made up when it started, with the ids of its processes: another one is another program. */
  readonly identity: string;
  /** Hashes of what is in memory and on disk, taken anew each time. */
  readonly memory: string;
  readonly files: string;
  /** Goes up as long as it works. */
  readonly ticks: number;
  readonly clockMs: number;
  /** Fresh from the kernel. */
  readonly random: string;
  readonly mark: string;
  /** What went wrong since it started, in its own words. */
  readonly problems: readonly string[];
}

/** When the question was asked and answered, by this machine's clock. */
export interface Asked {
  readonly fromMs: number;
  readonly toMs: number;
}

/** The first thing that is not as it was, or should be. */
export class SoakDifference extends Error {
  override readonly name = "SoakDifference";
}

/** Clocks inside are the host's; this is for rounding and for a machine that is busy. */
const CLOCK_TOLERANCE_MS = 1_000;

export function parseCheck(text: string): Check {
  let check: Partial<Check>;
  try {
    check = JSON.parse(text) as Partial<Check>;
  } catch {
    throw new SoakDifference(`its answer is not JSON: ${text.slice(0, 300)}`);
  }
  if (check.problems?.length) throw new SoakDifference(check.problems.slice(0, 5).join("; "));
  for (const name of ["identity", "memory", "files", "random"] as const) {
    if (typeof check[name] !== "string" || check[name].length < 16)
      throw new SoakDifference(`its answer has no ${name}: ${text.slice(0, 300)}`);
  }
  if (!Number.isInteger(check.ticks) || typeof check.clockMs !== "number") throw new SoakDifference(`its answer has no ticks or no clock`);
  return check as Check;
}

/** Random numbers of every sandbox of a run: none may come twice. */
export type Seen = Set<string>;

/** Fails with the first difference. `before` is what the workload, or the one that it was forked from, said last. */
export function compare(before: Check, now: Check, context: { readonly asked: Asked; readonly seen: Seen; readonly mark: string }): void {
  const { asked, seen, mark } = context;
  for (const name of ["identity", "memory", "files"] as const) {
    if (now[name] !== before[name]) throw new SoakDifference(`${name}: "${before[name]}" has become "${now[name]}"`);
  }
  if (now.mark !== mark) throw new SoakDifference(`mark: "${now.mark}" instead of "${mark}"`);
  if (now.ticks <= before.ticks) throw new SoakDifference(`its counter did not go on: ${before.ticks}, then ${now.ticks}`);
  if (now.clockMs < asked.fromMs - CLOCK_TOLERANCE_MS || now.clockMs > asked.toMs + CLOCK_TOLERANCE_MS) {
    throw new SoakDifference(`its clock is wrong by ${Math.round(now.clockMs - asked.toMs)} ms`);
  }
  if (seen.has(now.random)) throw new SoakDifference(`the kernel gave the random number ${now.random} twice`);
  seen.add(now.random);
}
