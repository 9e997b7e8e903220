import { Type } from "typebox";
import { invalid } from "../../../../errors.ts";
import { parseTemplateReference } from "../../../../templates/reference.ts";
import { teamOf } from "../../../input/request-values.ts";
import { defineOperation } from "../../../operation.ts";
import { failures } from "../../../output/responses.ts";
import { TagsField } from "../../../template-schemas.ts";

export const removeTags = defineOperation({
  id: "removeTags",
  method: "DELETE",
  path: "/templates/tags",
  tag: "templates",
  summary: "Remove tags from a template",
  description: "The builds stay, and can still be named by their ids. Tags that the template does not have are ignored.",
  auth: ["apiKey"],
  scope: "templates:build",
  body: Type.Object(
    { name: Type.String({ description: "The template's name, without a tag." }), tags: TagsField },
    { title: "RemoveTags" },
  ),
  responses: { 204: { description: "The template has none of the tags." }, ...failures(403, 404) },
  repeatable: true,
  handle: async (services, { caller, body }) => {
    if (body.name.includes(":")) throw invalid("Invalid name: it must not have a tag");
    await services.tags.remove(teamOf(caller), parseTemplateReference(body.name), body.tags);
    return { status: 204 };
  },
});
