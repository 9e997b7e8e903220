import { Type } from "typebox";
import { encodeCursor, MAX_PAGE, PageFields, parseCursor } from "../../input/cursor.ts";
import { teamOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { encodeBuild, encodeTemplate } from "../../output/encode-template.ts";
import { failures } from "../../output/responses.ts";
import { NEXT_TOKEN_HEADER, TemplateWithBuildsSchema } from "../../template-schemas.ts";

export const getTemplate = defineOperation({
  id: "getTemplate",
  method: "GET",
  path: "/templates/{templateID}",
  tag: "templates",
  summary: "Read a template and its builds",
  description: "The builds come newest first, in pages.",
  auth: ["apiKey"],
  scope: "templates:read",
  params: Type.Object({ templateID: Type.String({ description: "The id. Names are not accepted." }) }),
  query: Type.Object(PageFields),
  responses: {
    200: { description: "The template with one page of its builds.", schema: TemplateWithBuildsSchema, headers: NEXT_TOKEN_HEADER },
    ...failures(403, 404),
  },
  repeatable: true,
  handle: async (services, { caller, params, query }) => {
    const after = query.nextToken === undefined ? undefined : parseCursor(query.nextToken, "desc");
    const { listed, builds } = await services.templates.getWithBuilds(teamOf(caller), params.templateID, {
      limit: query.limit ?? MAX_PAGE,
      ...(after ? { after: { createdAt: after.startedAt, id: after.id } } : {}),
    });
    const { agentVersion } = services.encoding;
    const { last } = builds;
    return {
      status: 200,
      body: { ...encodeTemplate(listed, agentVersion), builds: builds.items.map((build) => encodeBuild(build, agentVersion)) },
      headers: last ? { "X-Next-Token": encodeCursor({ startedAt: last.createdAt, id: last.id }, "desc") } : {},
    };
  },
});
