import { may } from "../../../keys/caller.ts";
import { sandboxIdOf, teamOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { encodeSandboxDetail } from "../../output/encode-sandbox.ts";
import { failures } from "../../output/responses.ts";
import { SandboxDetailSchema, SandboxIdParams } from "../../schemas.ts";

export const getSandbox = defineOperation({
  id: "getSandbox",
  method: "GET",
  path: "/sandboxes/{sandboxID}",
  tag: "sandboxes",
  summary: "Read one sandbox",
  description: "Without `envdAccessToken` for callers that may read sandboxes only.",
  auth: ["apiKey"],
  scope: "sandboxes:read",
  params: SandboxIdParams,
  responses: { 200: { description: "The sandbox.", schema: SandboxDetailSchema }, ...failures(404) },
  repeatable: true,
  handle: async (services, request) => {
    const sandbox = await services.sandboxes.get(teamOf(request.caller).id, sandboxIdOf(request.params));
    // Whoever may only read gets nothing to change the sandbox with.
    const { envdAccessToken, ...readable } = encodeSandboxDetail(services.encoding, sandbox);
    const body = may(request.caller, "sandboxes:write") ? { ...readable, envdAccessToken } : readable;
    return { status: 200, body };
  },
});
