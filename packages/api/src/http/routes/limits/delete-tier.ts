import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { TierParams } from "./limit-bodies.ts";

export const deleteTier = defineOperation({
  id: "deleteTier",
  method: "DELETE",
  path: "/admin/tiers/{tier}",
  tag: "admin",
  summary: "Delete a tier",
  description: "Refused with 409 while teams have the tier. An addition of Skerry.",
  auth: ["admin"],
  scope: "operator",
  params: TierParams,
  responses: { 204: { description: "The tier is deleted." }, ...failures(404, 409) },
  repeatable: true,
  handle: async ({ limits }, { params }) => {
    await limits.deleteTier(params.tier);
    return { status: 204 };
  },
});
