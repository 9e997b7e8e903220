import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { TemplateLegacySchema } from "./build-bodies.ts";
import { answerDockerfile, DockerfileSchema } from "./dockerfile-request.ts";

export const requestBuildV1 = defineOperation({
  id: "requestBuildV1",
  method: "POST",
  path: "/templates",
  tag: "templates",
  summary: "Build a Dockerfile",
  description: "Builds the Dockerfile as a new template, or as the template that has the name. The build is started at once.",
  auth: ["accessToken"],
  scope: "templates:build",
  body: DockerfileSchema,
  responses: { 202: { description: "The build is started.", schema: TemplateLegacySchema }, ...failures(403, 404, 409, 413, 429) },
  repeatable: false,
  handle: async (services, { caller, body }) =>
    answerDockerfile(services, body, { team: await services.teams.choose(caller, body.teamID) }),
});
