import type { EgressCounts, EgressLine } from "@skerry/store";
import { type Static, Type } from "typebox";
import { DateTime } from "../../schemas.ts";

const Count = (description: string) => Type.Integer({ format: "int64", description });

export const EgressCountFields = {
  sentBytes: Count("Bytes that went out of the host, with the headers of packets."),
  receivedBytes: Count("Bytes that came in."),
  connections: Count("Connections and answered flows."),
  refused: Count("Connections, questions to the name server and packets that were refused."),
};

export const EgressLineSchema = Type.Object(
  {
    timestamp: DateTime("When it began."),
    verdict: Type.Union([Type.Literal("allowed"), Type.Literal("refused")]),
    rule: Type.String({
      description:
        "The rule for names that allowed it, empty if nothing denied it; or the reason why it was refused. `omitted`: see `count`.",
    }),
    protocol: Type.String({ description: "`dns`, `http`, `tls`, `tcp`, `udp`, `icmp` or `other`." }),
    name: Type.String({ description: "The name that the sandbox asked for. Empty if it named none." }),
    address: Type.String({ description: "Where it led. Empty if that was not looked up." }),
    port: Type.Integer({ description: "0 if there is none." }),
    sentBytes: Count("Bytes that the sandbox sent."),
    receivedBytes: Count("Bytes that it received."),
    count: Count("How many attempts the line stands for. With the rule `omitted`: those that have no lines of their own."),
  },
  { title: "EgressLine" },
);

export function encodeLine(line: EgressLine): Static<typeof EgressLineSchema> {
  const { protocol, name, address, port, sentBytes, receivedBytes, rule, count } = line;
  const verdict = line.isAllowed ? "allowed" : "refused";
  return { timestamp: new Date(line.at).toISOString(), verdict, rule, protocol, name, address, port, sentBytes, receivedBytes, count };
}

export function encodeCounts({ sentBytes, receivedBytes, connections, refused }: EgressCounts) {
  return { sentBytes, receivedBytes, connections, refused };
}
