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
    "All its builds go, whatever tag is given, and its names are free at once. Refused while sandboxes that were made from it run or are paused.",
  auth: ["apiKey", "accessToken"],
  params: Type.Object({ templateID: Type.String({ description: "Its id or name, percent-encoded; a tag is ignored." }) }),
  responses: { 204: { description: "It is gone." }, ...failures(403, 404) },
  repeatable: true,
  handle: async (services, { caller, params }) => {
    await services.templates.delete(await services.teams.teamsOf(caller), parseTemplateReference(params.templateID));
    return { status: 204 };
  },
});
