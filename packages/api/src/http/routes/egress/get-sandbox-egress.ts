import { Type } from "typebox";
import { invalid } from "../../../errors.ts";
import { sandboxIdOf, teamOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { SandboxIdParams } from "../../schemas.ts";
import { EgressCountFields, EgressLineSchema, encodeCounts, encodeLine } from "./egress-bodies.ts";

const MAX_LINES = 1000;

export const getSandboxEgress = defineOperation({
  id: "getSandboxEgress",
  method: "GET",
  path: "/sandboxes/{sandboxID}/egress",
  tag: "sandboxes",
  summary: "Read what a sandbox reached",
  description:
    "Connections, refused attempts and refused questions to the name server, the oldest first. Also of a sandbox that ended, while the log is kept. Empty for an unknown sandbox. An extension of Skerry.",
  auth: ["apiKey"],
  scope: "sandboxes:read",
  params: SandboxIdParams,
  query: Type.Object({
    cursor: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
        description: "Only what came after the answer with this `nextCursor`.",
      }),
    ),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_LINES, default: MAX_LINES })),
    start: Type.Optional(Type.Integer({ minimum: 0, description: "Only what began at this time or later, in milliseconds." })),
    end: Type.Optional(Type.Integer({ minimum: 0, description: "Only what began before this time, in milliseconds." })),
    verdict: Type.Optional(Type.Union([Type.Literal("allowed"), Type.Literal("refused")])),
  }),
  responses: {
    200: {
      description: "The lines, and what the sandbox did in all.",
      schema: Type.Object(
        {
          lines: Type.Array(EgressLineSchema),
          nextCursor: Type.Integer({ format: "int64", description: "The position to read on from, also if there is nothing new." }),
          totals: Type.Object(EgressCountFields, { title: "EgressCounts" }),
        },
        { title: "SandboxEgress" },
      ),
    },
    ...failures(),
  },
  repeatable: true,
  handle: async ({ egress }, { caller, params, query }) => {
    const { cursor = 0, limit = MAX_LINES, start, end, verdict } = query;
    if (start !== undefined && end !== undefined && start > end) throw invalid("start time cannot be after end time");
    const filter = {
      ...(start !== undefined && { start }),
      ...(end !== undefined && { end }),
      ...(verdict !== undefined && { isAllowed: verdict === "allowed" }),
    };
    const { lines, totals } = await egress.ofSandbox(teamOf(caller), sandboxIdOf(params), { after: cursor, limit, ...filter });
    return {
      status: 200,
      body: { lines: lines.map(encodeLine), nextCursor: lines.at(-1)?.position ?? cursor, totals: encodeCounts(totals) },
    };
  },
});
