import { Type } from "typebox";
import { defineOperation } from "../../operation.ts";
import { encodeForeignTemplate, encodeTemplate } from "../../output/encode-template.ts";
import { failures } from "../../output/responses.ts";
import { TemplateSchema } from "../../template-schemas.ts";

export const listDefaultTemplates = defineOperation({
  id: "listDefaultTemplates",
  method: "GET",
  path: "/default-templates",
  tag: "templates",
  summary: "List the templates that come with the platform",
  description: "By id. For a template of another team, the fields about its use are zero or null.",
  auth: ["apiKey", "accessToken"],
  responses: { 200: { description: "The templates.", schema: Type.Array(TemplateSchema) }, ...failures() },
  repeatable: true,
  handle: async (services, { caller }) => {
    const teams = new Set((await services.teams.teamsOf(caller)).map(({ id }) => id));
    const { agentVersion } = services.encoding;
    const listed = await services.templates.listDefault();
    return {
      status: 200,
      body: listed.map((entry) => (teams.has(entry.template.teamId) ? encodeTemplate : encodeForeignTemplate)(entry, agentVersion)),
    };
  },
});
