import { Type } from "typebox";
import { parseTemplateReference } from "../../../../templates/reference.ts";
import { teamOf } from "../../../input/request-values.ts";
import { defineOperation } from "../../../operation.ts";
import { failures } from "../../../output/responses.ts";
import { TagsField } from "../../../template-schemas.ts";

export const assignTags = defineOperation({
  id: "assignTags",
  method: "POST",
  path: "/templates/tags",
  tag: "templates",
  summary: "Give a build tags",
  description: "A tag that another build of the template has moves to this one. New sandboxes of the tag start from it.",
  auth: ["apiKey"],
  scope: "templates:build",
  body: Type.Object(
    {
      target: Type.String({ description: "The build as `name[:tag]`. The tag may be the id of a build." }),
      tags: TagsField,
    },
    { title: "AssignTags" },
  ),
  responses: {
    201: {
      description: "The build has the tags.",
      schema: Type.Object(
        { tags: Type.Array(Type.String(), { description: "The tags of this request." }), buildID: Type.String({ format: "uuid" }) },
        { title: "AssignedTags" },
      ),
    },
    ...failures(403, 404),
  },
  repeatable: true,
  handle: async (services, { caller, body }) => {
    const { tags, buildId } = await services.tags.assign(teamOf(caller), parseTemplateReference(body.target), body.tags);
    return { status: 201, body: { tags, buildID: buildId } };
  },
});
