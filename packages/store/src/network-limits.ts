import type { NetworkLimits } from "@skerry/wire/node";

/** The limits that a template has in the database. Those of a template that has none are undefined. */
export function networkLimitsFrom(text: string | null): NetworkLimits {
  const { bandwidthMbps, connections } = JSON.parse(text ?? "{}") as Partial<NetworkLimits>;
  return { bandwidthMbps, connections };
}
