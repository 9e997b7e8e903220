import { Type } from "typebox";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { TemplateLegacySchema } from "./build-bodies.ts";
import { answerDockerfile, DockerfileSchema } from "./dockerfile-request.ts";

export const rebuildDockerfile = defineOperation({
  id: "requestRebuildV1",
  method: "POST",
  path: "/templates/{templateID}",
  tag: "templates",
  summary: "Build a Dockerfile as an existing template",
  auth: ["accessToken"],
  scope: "templates:build",
  params: Type.Object({ templateID: Type.String({ description: "The template's id." }) }),
  body: DockerfileSchema,
  responses: { 202: { description: "The build is started.", schema: TemplateLegacySchema }, ...failures(403, 404, 409, 413, 429) },
  repeatable: false,
  handle: async (services, { caller, params, body }) => {
    const { templateID: templateId } = params;
    const teams = await services.teams.teamsOf(caller);
    const team = (await services.builds.teamOf(teams, templateId)) ?? (await services.teams.choose(caller, body.teamID));
    return await answerDockerfile(services, body, { team, templateId });
  },
});
