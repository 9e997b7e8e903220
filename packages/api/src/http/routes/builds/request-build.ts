import { Type } from "typebox";
import { invalid } from "../../../errors.ts";
import { shownName } from "../../../templates/reference.ts";
import { parseTemplateName } from "../../../templates/template-name.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { Int32 } from "../../schemas.ts";
import { BuildRequestedSchema, SizeFields } from "./build-bodies.ts";

export const requestBuild = defineOperation({
  id: "requestBuild",
  method: "POST",
  path: "/v3/templates",
  tag: "templates",
  summary: "Request a build of a template",
  description:
    "Registers a build of the template with this name, and the template if it is new. The build waits to be started with " +
    "`POST /v2/templates/{templateID}/builds/{buildID}`. Waiting builds of the template with one of the same tags fail.",
  auth: ["apiKey"],
  scope: "templates:build",
  body: Type.Object(
    {
      name: Type.Optional(Type.String({ description: "`[namespace/]name[:tag]`." })),
      tags: Type.Optional(
        Type.Array(Type.String(), { description: "Tags of the build, besides the one in the name. Default: `default`." }),
      ),
      alias: Type.Optional(Type.String({ deprecated: true, description: "Another name of `name`." })),
      teamID: Type.Optional(Type.String({ deprecated: true, description: "Must be the key's team." })),
      ...SizeFields,
      minFreeDiskMb: Type.Optional(
        Int32({ description: "Free disk space of the sandboxes in MiB, if more than the usual 10240 is needed.", minimum: 0 }),
      ),
    },
    { title: "TemplateBuildRequestV3" },
  ),
  responses: { 202: { description: "The build is registered.", schema: BuildRequestedSchema }, ...failures(403, 404, 409, 429) },
  repeatable: false,
  handle: async (services, { caller, body }) => {
    const team = await services.teams.choose(caller, body.teamID);
    const text = body.name ?? body.alias;
    if (text === undefined) throw invalid("Name is required");
    const name = parseTemplateName(text, team);
    const size = await services.builds.sizeOf(team, body);
    const { template, buildId, tags } = await services.builds.request({ team, name, tags: body.tags ?? [], size });
    return {
      status: 202,
      body: {
        templateID: template.id,
        buildID: buildId,
        public: template.isPublic,
        names: [shownName({ namespace: team.slug, name: name.alias })],
        tags,
        aliases: [name.alias],
      },
    };
  },
});
