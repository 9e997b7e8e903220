import { teamOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { encodeVolumeAndToken, NewVolumeSchema, VolumeAndTokenSchema, volumeNameOf } from "./volume-bodies.ts";

export const createVolume = defineOperation({
  id: "createVolume",
  method: "POST",
  path: "/volumes",
  tag: "volumes",
  summary: "Create an empty volume",
  auth: ["apiKey"],
  scope: "volumes:write",
  body: NewVolumeSchema,
  responses: { 201: { description: "The volume, with a token.", schema: VolumeAndTokenSchema }, ...failures(429, 503, 504) },
  repeatable: false,
  handle: async ({ volumes, encoding }, { caller, body }) => {
    const created = await volumes.create(teamOf(caller).id, { name: volumeNameOf(body.name), sizeMb: body.sizeMB });
    return { status: 201, body: encodeVolumeAndToken(encoding, created) };
  },
});
