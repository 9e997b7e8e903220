// The tolerance of the specification for the clock of a sandbox.
const MAX_BEHIND_MS = 50;
const MAX_AHEAD_MS = 5_000;

/**
 * How many milliseconds this sandbox's clock is ahead of the platform's (negative: behind); undefined within the tolerance.
 * The agent cannot correct it. Under both runtimes a sandbox has the host's clock, even right after a restore, and nothing in a
 * sandbox may set that clock.
 */
export function clockProblem(platformNs: bigint, nowMs: number): number | undefined {
  const aheadMs = nowMs - Number(platformNs / 1_000_000n);
  return aheadMs < -MAX_BEHIND_MS || aheadMs > MAX_AHEAD_MS ? aheadMs : undefined;
}
