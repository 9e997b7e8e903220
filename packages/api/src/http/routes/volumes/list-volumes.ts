import { Type } from "typebox";
import { teamOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { encodeVolume, VolumeSchema } from "./volume-bodies.ts";

export const listVolumes = defineOperation({
  id: "listVolumes",
  method: "GET",
  path: "/volumes",
  tag: "volumes",
  summary: "List the team's volumes, oldest first",
  auth: ["apiKey"],
  scope: "volumes:read",
  responses: { 200: { description: "The volumes.", schema: Type.Array(VolumeSchema) }, ...failures() },
  repeatable: true,
  handle: async ({ volumes }, { caller }) => ({ status: 200, body: (await volumes.list(teamOf(caller).id)).map(encodeVolume) }),
});
