const MAX_BEHIND_MS = 50;
const MAX_AHEAD_MS = 5_000;

/**
 * How far this sandbox's clock is from the platform's, in milliseconds and with its sign; undefined when that is near enough.
 * There is no stepping it: under both runtimes a sandbox's clock is its host's, also right after a restore, and nothing in a
 * sandbox may set that.
 */
export function clockProblem(platformNs: bigint, nowMs: number): number | undefined {
  const aheadMs = nowMs - Number(platformNs / 1_000_000n);
  return aheadMs < -MAX_BEHIND_MS || aheadMs > MAX_AHEAD_MS ? aheadMs : undefined;
}
