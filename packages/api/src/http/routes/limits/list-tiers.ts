import { Type } from "typebox";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { encodeTier, TierSchema } from "./limit-bodies.ts";

export const listTiers = defineOperation({
  id: "listTiers",
  method: "GET",
  path: "/admin/tiers",
  tag: "admin",
  summary: "List the tiers of limits",
  description: "The tier `default` first: its limits are the settings of the platform. The others by name. An addition of Skerry.",
  auth: ["admin"],
  scope: "operator",
  responses: { 200: { description: "The tiers.", schema: Type.Array(TierSchema) }, ...failures() },
  repeatable: true,
  handle: async ({ limits }) => ({ status: 200, body: (await limits.listTiers()).map(encodeTier) }),
});
