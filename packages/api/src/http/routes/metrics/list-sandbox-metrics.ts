import { parseSandboxId } from "@skerry/wire";
import { Type } from "typebox";
import { invalid, validationError } from "../../../errors.ts";
import { teamOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { encodeMetric, SandboxMetricSchema } from "./metric-bodies.ts";

const MAX_SANDBOXES = 100;

export const listSandboxMetrics = defineOperation({
  id: "listSandboxMetrics",
  method: "GET",
  path: "/sandboxes/metrics",
  tag: "sandboxes",
  summary: "Read the latest metrics of several sandboxes",
  auth: ["apiKey"],
  scope: "sandboxes:read",
  query: Type.Object({
    sandbox_ids: Type.String({ description: `The ids of at most ${MAX_SANDBOXES} sandboxes, separated by commas, each once.` }),
  }),
  responses: {
    200: {
      description: "The latest metrics by sandbox. Sandboxes without metrics are missing.",
      schema: Type.Object(
        { sandboxes: Type.Unsafe({ type: "object", additionalProperties: SandboxMetricSchema }) },
        { title: "SandboxesWithMetrics" },
      ),
    },
    ...failures(),
  },
  repeatable: true,
  handle: async ({ metrics }, { caller, query }) => {
    const texts = query.sandbox_ids.split(",").map((text) => text.trim());
    if (texts.length > MAX_SANDBOXES) throw invalid(`Too many sandboxes requested, maximum is ${MAX_SANDBOXES}`);
    const ids = texts.map((text) => {
      const id = parseSandboxId(text);
      if (!id) throw validationError("Invalid sandbox ID");
      return id;
    });
    if (new Set(ids).size < ids.length) throw validationError("query/sandbox_ids must have each id once");
    const found = await metrics.newest(teamOf(caller), ids);
    return { status: 200, body: { sandboxes: Object.fromEntries(found.map((metric) => [metric.sandboxId, encodeMetric(metric)])) } };
  },
});
