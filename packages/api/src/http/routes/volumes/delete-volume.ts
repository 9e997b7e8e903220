import { Type } from "typebox";
import { teamOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { VolumeParams, volumeIdOf } from "./volume-bodies.ts";

export const deleteVolume = defineOperation({
  id: "deleteVolume",
  method: "DELETE",
  path: "/volumes/{volumeID}",
  tag: "volumes",
  summary: "Delete a volume",
  description: "Refused while sandboxes mount it, also paused ones. Its files are removed in the background.",
  auth: ["apiKey"],
  scope: "volumes:write",
  params: VolumeParams,
  query: Type.Object({
    force: Type.Optional(
      Type.Union([Type.Literal("true"), Type.Literal("false")], {
        description: "Also while sandboxes mount it: they lose its files. An addition of Skerry.",
      }),
    ),
  }),
  responses: { 204: { description: "The volume is deleted." }, ...failures(404, 409) },
  repeatable: true,
  handle: async ({ volumes }, { caller, params, query }) => {
    await volumes.remove(teamOf(caller).id, volumeIdOf(params), { force: query.force === "true" });
    return { status: 204 };
  },
});
