const BYTES_PER_MS = 4 * 1024 * 1024;
const SOONEST_MS = 5;
const LATEST_MS = 200;

/** The time to the next check of a sandbox: it could not exceed its limit before, at the highest rate that a guest can reach. */
export function nextLookMs(heldBytes: number, limitBytes: number): number {
  return Math.min(Math.max((limitBytes - heldBytes) / BYTES_PER_MS, SOONEST_MS), LATEST_MS);
}
