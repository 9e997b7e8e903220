import { Type } from "typebox";
import { parseTemplateReference } from "../../../../templates/reference.ts";
import { normalizeTag } from "../../../../templates/template-name.ts";
import { MAX_PAGE } from "../../../input/cursor.ts";
import { teamOf } from "../../../input/request-values.ts";
import { encodePositionCursor, parsePositionCursor } from "../../../input/tag-cursor.ts";
import { defineOperation } from "../../../operation.ts";
import { encodeAssignment } from "../../../output/encode-template.ts";
import { failures } from "../../../output/responses.ts";
import { AssignmentSchema, TemplateRefParams } from "../../../template-schemas.ts";

const LIMIT = 50;

export const listTagAssignments = defineOperation({
  id: "listTagAssignments",
  method: "GET",
  path: "/templates/{templateID}/tags/{tag}/assignments",
  tag: "templates",
  summary: "List the builds that had a tag",
  description: "Newest first, in pages. Only ready builds count. A tag that the template does not have gives an empty page.",
  auth: ["apiKey"],
  scope: "templates:read",
  params: Type.Object({ ...TemplateRefParams.properties, tag: Type.String({ description: "The tag." }) }),
  query: Type.Object({
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: MAX_PAGE, default: LIMIT, description: "Largest number of items on the page." }),
    ),
    cursor: Type.Optional(Type.String({ description: "The `nextCursor` of the previous page." })),
  }),
  responses: {
    200: {
      description: "One page.",
      schema: Type.Object(
        { data: Type.Array(AssignmentSchema), nextCursor: Type.Union([Type.String(), Type.Null()]) },
        { title: "TagAssignments" },
      ),
    },
    ...failures(404),
  },
  repeatable: true,
  handle: async (services, { caller, params, query }) => {
    const { items, last } = await services.tags.history(teamOf(caller), parseTemplateReference(params.templateID), {
      tag: normalizeTag(params.tag),
      limit: query.limit ?? LIMIT,
      below: query.cursor === undefined ? undefined : parsePositionCursor(query.cursor),
    });
    return { status: 200, body: { data: items.map(encodeAssignment), nextCursor: last ? encodePositionCursor(last.position) : null } };
  },
});
