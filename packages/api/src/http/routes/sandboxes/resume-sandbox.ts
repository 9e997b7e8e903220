import { Type } from "typebox";
import { actingOf, sandboxIdOf, teamOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { failures, STARTED } from "../../output/responses.ts";
import { Int32, SandboxIdParams } from "../../schemas.ts";
import { answerConnected, memoryOption } from "./connect-sandbox.ts";

const DEFAULT_TIMEOUT_SECONDS = 15;

export const resumeSandbox = defineOperation({
  id: "resumeSandbox",
  method: "POST",
  path: "/sandboxes/{sandboxID}/resume",
  tag: "sandboxes",
  summary: "Resume a paused sandbox (older clients)",
  description: "As `POST /v2/sandboxes/{sandboxID}/connect`, but 409 for a running sandbox.",
  deprecated: true,
  auth: ["apiKey"],
  scope: "sandboxes:write",
  params: SandboxIdParams,
  body: Type.Object(
    {
      timeout: Type.Optional(
        Int32({ description: "Timeout in seconds, counted from the answer.", minimum: 0, default: DEFAULT_TIMEOUT_SECONDS }),
      ),
      autoPause: Type.Optional(Type.Boolean({ description: "Replaces the value of the create request." })),
      memory: memoryOption,
    },
    { title: "ResumeSandbox" },
  ),
  bodyOptional: true,
  responses: { 201: STARTED, ...failures(404, 409, 429, 501, 503, 504) },
  repeatable: true,
  handle: async (services, request) => {
    const { timeout = DEFAULT_TIMEOUT_SECONDS, autoPause, memory = true } = request.body ?? {};
    const id = sandboxIdOf(request.params);
    await services.sandboxes.assertTimeout(teamOf(request.caller).id, timeout);
    const options = { timeoutMs: timeout * 1000, memory, autoPause, signal: request.signal };
    return answerConnected(services, await services.sandboxes.resume(actingOf(request.caller), id, options));
  },
});
