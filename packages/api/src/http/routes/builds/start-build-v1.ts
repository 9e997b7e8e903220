import { invalid } from "../../../errors.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { BuildParams } from "./build-bodies.ts";

export const startBuildV1 = defineOperation({
  id: "startBuildV1",
  method: "POST",
  path: "/templates/{templateID}/builds/{buildID}",
  tag: "templates",
  summary: "Start a build of a Dockerfile (older clients)",
  description: "Has no effect: such builds are started when they are requested. Images cannot be pushed to this platform.",
  deprecated: true,
  auth: ["accessToken"],
  scope: "templates:build",
  params: BuildParams,
  responses: { 202: { description: "The build is started." }, ...failures(403, 404) },
  repeatable: true,
  handle: async (services, { caller, params }) => {
    const ids = { templateId: params.templateID, buildId: params.buildID };
    const job = await services.builds.findToStart(await services.teams.teamsOf(caller), ids);
    if (job.isLegacy) return { status: 202 };
    throw invalid("images cannot be pushed to this platform: start the build with POST /v2/templates/{templateID}/builds/{buildID}");
  },
});
