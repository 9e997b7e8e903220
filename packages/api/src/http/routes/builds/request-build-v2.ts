import { Type } from "typebox";
import { parseTemplateName } from "../../../templates/template-name.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { encodeLegacy, SizeFields, TemplateLegacySchema } from "./build-bodies.ts";

export const requestBuildV2 = defineOperation({
  id: "requestBuildV2",
  method: "POST",
  path: "/v2/templates",
  tag: "templates",
  summary: "Request a build of a template (older clients)",
  deprecated: true,
  auth: ["apiKey"],
  scope: "templates:build",
  body: Type.Object(
    {
      alias: Type.String({ description: "`[namespace/]name[:tag]`." }),
      teamID: Type.Optional(Type.String({ deprecated: true, description: "Must be the key's team." })),
      ...SizeFields,
    },
    { title: "TemplateBuildRequestV2" },
  ),
  responses: { 202: { description: "The build is registered.", schema: TemplateLegacySchema }, ...failures(403, 404, 409, 429) },
  repeatable: false,
  handle: async (services, { caller, body }) => {
    const team = await services.teams.choose(caller, body.teamID);
    const name = parseTemplateName(body.alias, team);
    const size = await services.builds.sizeOf(team, body);
    const requested = await services.builds.request({ team, name, size });
    return { status: 202, body: encodeLegacy(requested, { namespace: team.slug, alias: name.alias, size }) };
  },
});
