const BYTES_PER_MS = 4 * 1024 * 1024;
const SOONEST_MS = 5;
const LATEST_MS = 200;

/** When a sandbox has to be looked at again: before it could pass its limit, at a rate that no guest has been seen to reach. */
export function nextLookMs(heldBytes: number, limitBytes: number): number {
  return Math.min(Math.max((limitBytes - heldBytes) / BYTES_PER_MS, SOONEST_MS), LATEST_MS);
}
