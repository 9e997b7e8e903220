import { Type } from "typebox";
import { parseTemplateReference } from "../../../../templates/reference.ts";
import { TAG_SORTS } from "../../../../templates/tag-service.ts";
import { MAX_PAGE } from "../../../input/cursor.ts";
import { teamOf } from "../../../input/request-values.ts";
import { encodeTagCursor, parseTagCursor } from "../../../input/tag-cursor.ts";
import { defineOperation } from "../../../operation.ts";
import { encodeAssignment } from "../../../output/encode-template.ts";
import { failures } from "../../../output/responses.ts";
import { AssignmentSchema, TemplateRefParams } from "../../../template-schemas.ts";

const ASSIGNMENTS = 6;
const TAGS = 25;

const limit = (description: string, standard: number) =>
  Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_PAGE, default: standard, description }));

const GroupSchema = Type.Object(
  {
    tag: Type.String(),
    assignments: Type.Array(AssignmentSchema, { description: "Newest first." }),
    hasMore: Type.Boolean({ description: "Whether the tag has older assignments." }),
  },
  { title: "TagGroup" },
);

export const listTagGroups = defineOperation({
  id: "listTagGroups",
  method: "GET",
  path: "/templates/{templateID}/tags/groups",
  tag: "templates",
  summary: "List a template's tags with their latest assignments",
  description: "In pages. Only ready builds count.",
  auth: ["apiKey"],
  scope: "templates:read",
  params: TemplateRefParams,
  query: Type.Object({
    assignmentLimit: limit("Largest number of assignments of each tag.", ASSIGNMENTS),
    tagsLimit: limit("Largest number of tags on the page.", TAGS),
    tagsCursor: Type.Optional(Type.String({ description: "The `nextCursor` of the previous page." })),
    search: Type.Optional(Type.String({ description: "Only tags that contain this text." })),
    sort: Type.Optional(
      Type.Union(
        TAG_SORTS.map((sort) => Type.Literal(sort)),
        { default: "latest_desc", description: "By the latest assignment, or by name." },
      ),
    ),
  }),
  responses: {
    200: {
      description: "One page.",
      schema: Type.Object({ tags: Type.Array(GroupSchema), nextCursor: Type.Union([Type.String(), Type.Null()]) }, { title: "TagGroups" }),
    },
    ...failures(404),
  },
  repeatable: true,
  handle: async (services, { caller, params, query }) => {
    const sort = query.sort ?? "latest_desc";
    const { items, last } = await services.tags.groups(teamOf(caller), parseTemplateReference(params.templateID), {
      assignmentLimit: query.assignmentLimit ?? ASSIGNMENTS,
      tagsLimit: query.tagsLimit ?? TAGS,
      sort,
      search: query.search,
      after: query.tagsCursor === undefined ? undefined : parseTagCursor(query.tagsCursor, sort),
    });
    return {
      status: 200,
      body: {
        tags: items.map(({ tag, assignments, hasMore }) => ({ tag, assignments: assignments.map(encodeAssignment), hasMore })),
        nextCursor: last ? encodeTagCursor(last, sort) : null,
      },
    };
  },
});
