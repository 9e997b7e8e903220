import { sandboxIdOf, teamOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { SandboxIdParams } from "../../schemas.ts";
import { CONFIDENTIAL, encodeMadeLink, LinkRequestSchema, MadeLinkSchema, newLinkOf } from "./link-bodies.ts";

export const createLink = defineOperation({
  id: "createSandboxLink",
  method: "POST",
  path: "/sandboxes/{sandboxID}/links",
  tag: "sandboxes",
  summary: "Create a link to a port",
  description: "Whoever has the link reaches the port until it expires or is revoked, also of a private sandbox.",
  auth: ["apiKey"],
  scope: "sandboxes:write",
  confidential: CONFIDENTIAL,
  params: SandboxIdParams,
  body: LinkRequestSchema,
  responses: { 201: { description: "The link, with its token.", schema: MadeLinkSchema }, ...failures(404, 429) },
  repeatable: false,
  handle: async ({ sandboxes, links }, { caller, params, body }) => {
    const teamId = teamOf(caller).id;
    const { id } = await sandboxes.get(teamId, sandboxIdOf(params));
    return { status: 201, body: encodeMadeLink(await links.create(teamId, newLinkOf(id, body))) };
  },
});
