/** What was found and removed, by kind: `{ sandboxes: 2, mounts: 5, firewall: true }`. */
export type CleanupCounts = Readonly<Record<string, number | boolean>>;

export function describeCleanup(counts: CleanupCounts): string {
  const found = Object.entries(counts).filter(([, count]) => Number(count) > 0);
  if (found.length === 0) return "nothing was left";
  return `removed ${found.map(([kind, count]) => (count === true ? kind : `${kind} ${count}`)).join(", ")}`;
}
