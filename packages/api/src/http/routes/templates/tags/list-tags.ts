import { Type } from "typebox";
import { parseTemplateReference } from "../../../../templates/reference.ts";
import { teamOf } from "../../../input/request-values.ts";
import { defineOperation } from "../../../operation.ts";
import { encodeTime } from "../../../output/encode-template.ts";
import { failures } from "../../../output/responses.ts";
import { TemplateRefParams, TemplateTagSchema } from "../../../template-schemas.ts";

export const listTags = defineOperation({
  id: "listTags",
  method: "GET",
  path: "/templates/{templateID}/tags",
  tag: "templates",
  summary: "List a template's tags",
  description: "Each tag once, by name, with the build that got it last. That build may not be ready; then an earlier one is still served.",
  auth: ["apiKey"],
  scope: "templates:read",
  params: TemplateRefParams,
  responses: { 200: { description: "The tags.", schema: Type.Array(TemplateTagSchema) }, ...failures(403, 404) },
  repeatable: true,
  handle: async (services, { caller, params }) => {
    const tags = await services.tags.list(teamOf(caller), parseTemplateReference(params.templateID));
    return {
      status: 200,
      body: tags.map(({ tag, buildId, assignedAt }) => ({ tag, buildID: buildId, createdAt: encodeTime(assignedAt) })),
    };
  },
});
