import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { encodeTier, limitsOf, NewTierSchema, TierParams, TierSchema } from "./limit-bodies.ts";

export const putTier = defineOperation({
  id: "putTier",
  method: "PUT",
  path: "/admin/tiers/{tier}",
  tag: "admin",
  summary: "Set the limits of a tier",
  description:
    "Adds the tier, or replaces its limits. A limit that is absent has the value of the tier `default`. Counts for the next request of each of " +
    "its teams. An addition of Skerry.",
  auth: ["admin"],
  scope: "operator",
  params: TierParams,
  body: NewTierSchema,
  responses: { 200: { description: "The tier.", schema: TierSchema }, ...failures(409) },
  repeatable: true,
  handle: async ({ limits }, { params, body }) => ({
    status: 200,
    body: encodeTier(await limits.putTier(params.tier, limitsOf(body.limits))),
  }),
});
