import { Type } from "typebox";
import { parseTemplateReference } from "../../../../templates/reference.ts";
import { normalizeTag } from "../../../../templates/template-name.ts";
import { teamOf } from "../../../input/request-values.ts";
import { defineOperation } from "../../../operation.ts";
import { failures } from "../../../output/responses.ts";
import { TemplateRefParams } from "../../../template-schemas.ts";

export const tagExists = defineOperation({
  id: "tagExists",
  method: "GET",
  path: "/templates/{templateID}/tags/exists",
  tag: "templates",
  summary: "Look up one tag of a template",
  description: "A tag exists when it has a ready build.",
  auth: ["apiKey"],
  scope: "templates:read",
  params: TemplateRefParams,
  query: Type.Object({ tag: Type.String({ description: "The tag, in any case." }) }),
  responses: {
    200: {
      description: "Whether the tag exists.",
      schema: Type.Object(
        { exists: Type.Boolean(), normalizedTag: Type.String({ description: "The tag as the platform stores it." }) },
        { title: "TagExists" },
      ),
    },
    ...failures(404),
  },
  repeatable: true,
  handle: async (services, { caller, params, query }) => {
    const tag = normalizeTag(query.tag);
    const exists = await services.tags.exists(teamOf(caller), parseTemplateReference(params.templateID), tag);
    return { status: 200, body: { exists, normalizedTag: tag } };
  },
});
