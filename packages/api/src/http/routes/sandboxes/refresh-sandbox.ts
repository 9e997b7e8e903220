import { Type } from "typebox";
import { sandboxIdOf, teamOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { Int32, SandboxIdParams } from "../../schemas.ts";

export const refreshSandbox = defineOperation({
  id: "refreshSandbox",
  method: "POST",
  path: "/sandboxes/{sandboxID}/refreshes",
  tag: "sandboxes",
  summary: "Keep a sandbox alive",
  description: "Extends the timeout to at least `duration` seconds from now, and at least 15. Never shortens it.",
  auth: ["apiKey"],
  scope: "sandboxes:write",
  params: SandboxIdParams,
  body: Type.Object(
    { duration: Type.Optional(Int32({ description: "Seconds from now.", minimum: 0, maximum: 3600, default: 15 })) },
    { title: "SandboxRefresh" },
  ),
  bodyOptional: true,
  responses: { 204: { description: "The timeout is extended." }, ...failures(404, 409) },
  repeatable: true,
  handle: async (services, request) => {
    const durationMs = (request.body?.duration ?? 0) * 1000;
    await services.sandboxes.refresh(teamOf(request.caller).id, sandboxIdOf(request.params), durationMs);
    return { status: 204 };
  },
});
