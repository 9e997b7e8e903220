import { Type } from "typebox";
import { sandboxIdOf, teamOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { SandboxIdParams } from "../../schemas.ts";
import { CONFIDENTIAL, encodeLink, LinkSchema } from "./link-bodies.ts";

export const listLinks = defineOperation({
  id: "listSandboxLinks",
  method: "GET",
  path: "/sandboxes/{sandboxID}/links",
  tag: "sandboxes",
  summary: "List the links to ports of a sandbox, without their tokens",
  description: "Oldest first, without those that have expired.",
  auth: ["apiKey"],
  scope: "sandboxes:read",
  confidential: CONFIDENTIAL,
  params: SandboxIdParams,
  responses: { 200: { description: "All links.", schema: Type.Array(LinkSchema) }, ...failures(404) },
  repeatable: true,
  handle: async ({ sandboxes, links }, { caller, params }) => {
    const { id } = await sandboxes.get(teamOf(caller).id, sandboxIdOf(params));
    return { status: 200, body: (await links.list(id)).map(encodeLink) };
  },
});
