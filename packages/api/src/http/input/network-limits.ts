// How much of the network a sandbox may use, as callers choose it: in a create request, in a change of its network, and for a template.

import type { NetworkLimits } from "@skerry/wire/node";
import { type Static, Type } from "typebox";
import { LIMITS } from "../../teams/limits.ts";

const { sandboxBandwidthMbps: bandwidth, sandboxConnections: connections } = LIMITS;

const Fields = Type.Object(
  {
    bandwidthMbps: Type.Optional(
      Type.Integer({
        minimum: bandwidth.min,
        maximum: bandwidth.max,
        description: "What the sandbox may send, and what it may receive, each in 10^6 bits per second.",
      }),
    ),
    connections: Type.Optional(
      Type.Integer({
        minimum: connections.min,
        maximum: connections.max,
        description: "Connections to the outside at the same time, also of UDP and ICMP.",
      }),
    ),
  },
  { additionalProperties: false },
);

export const NetworkLimitsSchema = Type.Optional(
  Type.Union([Fields, Type.Null()], {
    description:
      "How much of the network it may use, within the limits of the team. What is absent is decided by the template, or by the team.",
  }),
);

/** Undefined for none. */
export function encodeNetworkLimits({ bandwidthMbps, connections }: NetworkLimits): Static<typeof Fields> | undefined {
  if (bandwidthMbps === undefined && connections === undefined) return undefined;
  return { ...(bandwidthMbps === undefined ? {} : { bandwidthMbps }), ...(connections === undefined ? {} : { connections }) };
}

export function networkLimitsFrom(given: Static<typeof Fields> | null): NetworkLimits {
  return { bandwidthMbps: given?.bandwidthMbps, connections: given?.connections };
}
