import { Type } from "typebox";
import { originOf } from "../../input/origin.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";

export const getBuildFileUpload = defineOperation({
  id: "getBuildFileUpload",
  method: "GET",
  path: "/templates/{templateID}/files/{hash}",
  tag: "templates",
  summary: "Get a link to upload files for a build",
  description:
    "Files of a hash are uploaded once for all templates of a team. The link takes one `PUT` of a tar archive, plain or compressed with gzip, " +
    "with its exact `Content-Length` and without credentials. It is valid for 30 minutes.",
  auth: ["apiKey", "accessToken"],
  scope: "templates:build",
  params: Type.Object({
    templateID: Type.String({ description: "The template's id." }),
    hash: Type.String({ description: "The client's hash of the files: 64 hex digits in lower case." }),
  }),
  responses: {
    201: {
      description: "The link.",
      schema: Type.Object(
        {
          present: Type.Boolean({ description: "Whether the team has uploaded files of this hash already." }),
          url: Type.Optional(Type.String({ description: "Where to upload them." })),
        },
        { title: "TemplateBuildFileUpload" },
      ),
    },
    ...failures(404),
  },
  repeatable: true,
  handle: async (services, { caller, params, headers }) => {
    const about = { templateId: params.templateID, hash: params.hash, origin: originOf(headers) };
    const { isPresent, url } = await services.uploads.link(await services.teams.teamsOf(caller), about);
    return { status: 201, body: { present: isPresent, url } };
  },
});
