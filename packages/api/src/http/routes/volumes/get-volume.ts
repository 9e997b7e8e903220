import { may } from "../../../keys/caller.ts";
import { teamOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { encodeVolumeAndToken, VolumeAndTokenSchema, VolumeParams, volumeIdOf } from "./volume-bodies.ts";

export const getVolume = defineOperation({
  id: "getVolume",
  method: "GET",
  path: "/volumes/{volumeID}",
  tag: "volumes",
  summary: "Get a volume, with a new token",
  description: "For callers that may only read volumes, the token only reads.",
  auth: ["apiKey"],
  scope: "volumes:read",
  params: VolumeParams,
  responses: { 200: { description: "The volume, with a token.", schema: VolumeAndTokenSchema }, ...failures(404) },
  repeatable: true,
  handle: async ({ volumes, encoding }, { caller, params }) => {
    const access = may(caller, "volumes:write") ? "write" : "read";
    return { status: 200, body: encodeVolumeAndToken(encoding, await volumes.get(teamOf(caller).id, volumeIdOf(params), access)) };
  },
});
