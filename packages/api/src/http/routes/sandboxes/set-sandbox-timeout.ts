import { Type } from "typebox";
import { sandboxIdOf, teamOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { Int32, SandboxIdParams } from "../../schemas.ts";

export const setSandboxTimeout = defineOperation({
  id: "setSandboxTimeout",
  method: "POST",
  path: "/sandboxes/{sandboxID}/timeout",
  tag: "sandboxes",
  summary: "Set when a sandbox ends",
  description:
    "It ends `timeout` seconds from now, sooner or later than before; 0 ends it at once. " +
    "No sandbox lives longer than the platform's limit, counted from its start: what is over that is cut off without an error.",
  auth: ["apiKey"],
  params: SandboxIdParams,
  body: Type.Object({ timeout: Int32({ description: "Seconds from now.", minimum: 0 }) }, { title: "SandboxTimeout" }),
  responses: { 204: { description: "It is set." }, ...failures(404, 409) },
  repeatable: true,
  handle: async (services, request) => {
    await services.sandboxes.setTimeout(teamOf(request.caller).id, sandboxIdOf(request.params), request.body.timeout * 1000);
    return { status: 204 };
  },
});
