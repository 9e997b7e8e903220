import { isUuid } from "@skerry/wire";
import { type Static, Type } from "typebox";
import { invalid } from "../../../errors.ts";
import { encodeCursor, MAX_PAGE, PageFields, parseCursor } from "../../input/cursor.ts";
import { defineOperation } from "../../operation.ts";
import { encodeTemplate } from "../../output/encode-template.ts";
import { failures } from "../../output/responses.ts";
import { NEXT_TOKEN_HEADER, TemplateSchema } from "../../template-schemas.ts";

const TeamField = {
  teamID: Type.Optional(Type.String({ description: "For users with several teams: the team whose templates are listed." })),
};

export const listTemplates = defineOperation({
  id: "listTemplates",
  method: "GET",
  path: "/templates",
  tag: "templates",
  summary: "List a team's templates in one answer",
  description: "Oldest first, without snapshots. Refused with 400 for more than 5,000 templates.",
  auth: ["apiKey", "accessToken"],
  scope: "templates:read",
  query: Type.Object(TeamField),
  responses: { 200: { description: "The templates.", schema: Type.Array(TemplateSchema) }, ...failures(403) },
  repeatable: true,
  handle: async (services, { caller, query }) => {
    const team = await services.teams.choose(caller, teamIdOf(query));
    const listed = await services.templates.listOfTeam(team.id);
    return { status: 200, body: listed.map((entry) => encodeTemplate(entry, services.encoding.agentVersion)) };
  },
});

export const listTemplatesV2 = defineOperation({
  id: "listTemplatesV2",
  method: "GET",
  path: "/v2/templates",
  tag: "templates",
  summary: "List a team's templates",
  description: "Newest first, in pages, without snapshots.",
  auth: ["apiKey", "accessToken"],
  scope: "templates:read",
  query: Type.Object({ ...TeamField, ...PageFields }),
  responses: { 200: { description: "One page.", schema: Type.Array(TemplateSchema), headers: NEXT_TOKEN_HEADER }, ...failures(403) },
  repeatable: true,
  handle: async (services, { caller, query }) => {
    const after = query.nextToken === undefined ? undefined : parseCursor(query.nextToken, "desc");
    const team = await services.teams.choose(caller, teamIdOf(query));
    const { items, last } = await services.templates.pageOfTeam(team.id, {
      limit: query.limit ?? MAX_PAGE,
      ...(after ? { after: { createdAt: after.startedAt, id: after.id } } : {}),
    });
    return {
      status: 200,
      body: items.map((entry) => encodeTemplate(entry, services.encoding.agentVersion)),
      headers: last ? { "X-Next-Token": encodeCursor({ startedAt: last.template.createdAt, id: last.template.id }, "desc") } : {},
    };
  },
});

const TeamQuerySchema = Type.Object(TeamField);

function teamIdOf({ teamID }: Static<typeof TeamQuerySchema>): string | undefined {
  if (teamID !== undefined && !isUuid(teamID)) throw invalid("Invalid team ID");
  return teamID;
}
