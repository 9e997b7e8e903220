// How much of the network a sandbox may use. In the database the options have what its caller or its template chose; those for a node have
// what counts, within the limits of the team.

import type { SandboxOptions } from "./sandbox-options.ts";

/** Undefined: no limit of its own. */
export interface NetworkLimits {
  /** What it sends and what it receives, each: 10^6 bits per second. */
  readonly bandwidthMbps: number | undefined;
  /** Connections to the outside at once. */
  readonly connections: number | undefined;
}

export function networkLimitsOf({ networkUse }: SandboxOptions): NetworkLimits {
  return { bandwidthMbps: networkUse?.bandwidthMbps, connections: networkUse?.connections };
}

/** Options with these limits. */
export function withNetworkLimits(options: SandboxOptions, { bandwidthMbps, connections }: NetworkLimits): SandboxOptions {
  const { networkUse: _former, ...rest } = options;
  const chosen = {
    ...(bandwidthMbps === undefined ? {} : { bandwidthMbps }),
    ...(connections === undefined ? {} : { connections }),
  };
  return Object.keys(chosen).length === 0 ? rest : { ...rest, networkUse: chosen };
}

/** What a caller chose, and for the rest what the template says. */
export function chosenLimits(chosen: NetworkLimits, ofTemplate: NetworkLimits): NetworkLimits {
  return {
    bandwidthMbps: chosen.bandwidthMbps ?? ofTemplate.bandwidthMbps,
    connections: chosen.connections ?? ofTemplate.connections,
  };
}

/** The lower of each two limits. */
export function lowerLimits(one: NetworkLimits, other: NetworkLimits): NetworkLimits {
  return { bandwidthMbps: lower(one.bandwidthMbps, other.bandwidthMbps), connections: lower(one.connections, other.connections) };
}

function lower(one: number | undefined, other: number | undefined): number | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return Math.min(one, other);
}
