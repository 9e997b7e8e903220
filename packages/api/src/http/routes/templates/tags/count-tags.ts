import { Type } from "typebox";
import { parseTemplateReference } from "../../../../templates/reference.ts";
import { teamOf } from "../../../input/request-values.ts";
import { defineOperation } from "../../../operation.ts";
import { failures } from "../../../output/responses.ts";
import { Int32 } from "../../../schemas.ts";
import { TemplateRefParams } from "../../../template-schemas.ts";

export const countTags = defineOperation({
  id: "countTags",
  method: "GET",
  path: "/templates/{templateID}/tags/count",
  tag: "templates",
  summary: "Count a template's tags",
  description: "Counts the tags that have a ready build.",
  auth: ["apiKey"],
  scope: "templates:read",
  params: TemplateRefParams,
  responses: {
    200: {
      description: "The number of tags.",
      schema: Type.Object({ total: Int32({ description: "Number of tags.", minimum: 0 }) }, { title: "TagCount" }),
    },
    ...failures(404),
  },
  repeatable: true,
  handle: async (services, { caller, params }) => {
    return { status: 200, body: { total: await services.tags.count(teamOf(caller), parseTemplateReference(params.templateID)) } };
  },
});
