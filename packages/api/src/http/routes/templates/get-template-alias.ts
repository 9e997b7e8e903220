import { Type } from "typebox";
import { parseTemplateReference } from "../../../templates/reference.ts";
import { teamOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";

export const getTemplateAlias = defineOperation({
  id: "getTemplateAlias",
  method: "GET",
  path: "/templates/aliases/{alias}",
  tag: "templates",
  summary: "Look up a template's name",
  description:
    "Answers 403 for a name that a template of another team has for all teams, and 404 for a name that is free. With a tag, the tag must have a " +
    "ready build. A template that was never built has its name nevertheless.",
  auth: ["apiKey"],
  scope: "templates:read",
  params: Type.Object({ alias: Type.String({ description: "The name as `[namespace/]name[:tag]`, percent-encoded." }) }),
  responses: {
    200: {
      description: "The team's template of this name.",
      schema: Type.Object({ templateID: Type.String(), public: Type.Boolean() }, { title: "TemplateAlias" }),
    },
    ...failures(403, 404),
  },
  repeatable: true,
  handle: async (services, { caller, params }) => {
    const template = await services.templates.findNamed(teamOf(caller), parseTemplateReference(params.alias));
    return { status: 200, body: { templateID: template.id, public: template.isPublic } };
  },
});
