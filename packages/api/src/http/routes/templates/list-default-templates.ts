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
  description:
    "By id. Those that are not public are shown to their own team only. For a template of another team, the fields about its use are zero or " +
    "null. The size is that of the ready build, and zero if there is none.",
  auth: ["apiKey", "accessToken"],
  scope: "templates:read",
  responses: { 200: { description: "The templates.", schema: Type.Array(TemplateSchema) }, ...failures() },
  repeatable: true,
  handle: async (services, { caller }) => {
    const teams = new Set((await services.teams.teamsOf(caller)).map(({ id }) => id));
    const { agentVersion } = services.encoding;
    const shown = (await services.templates.listDefault()).flatMap((listed) => {
      const { template, build } = listed;
      const entry = { ...listed, sizes: build };
      if (teams.has(template.teamId)) return [encodeTemplate(entry, agentVersion)];
      return template.isPublic ? [encodeForeignTemplate(entry, agentVersion)] : [];
    });
    return { status: 200, body: shown };
  },
});
