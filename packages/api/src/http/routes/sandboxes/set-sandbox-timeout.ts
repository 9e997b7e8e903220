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
  summary: "Set the timeout of a sandbox",
  description:
    "The timeout passes `timeout` seconds from now, which may be sooner or later than before. 0 lets it pass at once. " +
    "A value beyond the platform's limit, counted from the start of the sandbox, is reduced to the limit without an error.",
  auth: ["apiKey"],
  scope: "sandboxes:write",
  params: SandboxIdParams,
  body: Type.Object({ timeout: Int32({ description: "Seconds from now.", minimum: 0 }) }, { title: "SandboxTimeout" }),
  responses: { 204: { description: "The timeout is set." }, ...failures(404, 409) },
  repeatable: true,
  handle: async (services, request) => {
    await services.sandboxes.setTimeout(teamOf(request.caller).id, sandboxIdOf(request.params), request.body.timeout * 1000);
    return { status: 204 };
  },
});
