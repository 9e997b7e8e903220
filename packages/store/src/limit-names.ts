/** What can be limited for a team. The names are stored. */
export const LIMIT_NAMES = [
  "sandboxes",
  "cpu",
  "memoryMb",
  "diskMb",
  "sandboxCpu",
  "sandboxMemoryMb",
  "sandboxDiskMb",
  "sandboxBandwidthMbps",
  "sandboxConnections",
  "timeoutHours",
  "builds",
  "snapshots",
  "volumes",
  "volumeMb",
  "requestsPerSecond",
] as const;

export type LimitName = (typeof LIMIT_NAMES)[number];

/** Null: no limit. A missing one is decided elsewhere: that of the tier, or of the platform. */
export type LimitValues = Partial<Record<LimitName, number | null>>;

/** Reads stored limits. Ignores what it does not know: a newer version may have written it. */
export function limitsFrom(text: string | null): LimitValues {
  if (text === null) return {};
  const stored = JSON.parse(text) as Record<string, unknown>;
  const known = LIMIT_NAMES.filter((name) => stored[name] === null || typeof stored[name] === "number");
  return Object.fromEntries(known.map((name) => [name, stored[name] as number | null]));
}
