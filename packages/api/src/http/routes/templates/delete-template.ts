import { Type } from "typebox";
import { parseTemplateReference } from "../../../templates/reference.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";

export const deleteTemplate = defineOperation({
  id: "deleteTemplate",
  method: "DELETE",
  path: "/templates/{templateID}",
  tag: "templates",
  summary: "Delete a template or a snapshot",
  description:
    "Deletes all builds, whatever tag is given, and frees the names at once. Refused while sandboxes of the template run or are paused.",
  auth: ["apiKey", "accessToken"],
  scope: "templates:build",
  params: Type.Object({ templateID: Type.String({ description: "The id or name, percent-encoded. A tag is ignored." }) }),
  responses: { 204: { description: "The template is deleted." }, ...failures(403, 404) },
  repeatable: true,
  handle: async (services, { caller, params }) => {
    await services.templates.delete(await services.teams.teamsOf(caller), parseTemplateReference(params.templateID));
    return { status: 204 };
  },
});
