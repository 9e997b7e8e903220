import { Type } from "typebox";
import { sandboxIdOf, teamOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { SandboxIdParams } from "../../schemas.ts";
import { CONFIDENTIAL } from "./link-bodies.ts";

export const revokeLink = defineOperation({
  id: "deleteSandboxLink",
  method: "DELETE",
  path: "/sandboxes/{sandboxID}/links/{linkID}",
  tag: "sandboxes",
  summary: "Revoke a link to a port",
  description:
    "Requests that arrive later than five seconds after the answer don't pass with the link. Responses and WebSockets that are open stay open.",
  auth: ["apiKey"],
  scope: "sandboxes:write",
  confidential: CONFIDENTIAL,
  params: Type.Object({ ...SandboxIdParams.properties, linkID: Type.String({ description: "The link's id." }) }),
  responses: { 204: { description: "The link is revoked." }, ...failures(404) },
  repeatable: true,
  handle: async ({ sandboxes, links }, { caller, params }) => {
    const { id } = await sandboxes.get(teamOf(caller).id, sandboxIdOf(params));
    await links.revoke(id, params.linkID);
    return { status: 204 };
  },
});
