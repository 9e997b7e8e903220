import { Type } from "typebox";
import { actingOf, sandboxIdOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { memoryLostHeaders } from "../../output/encode-sandbox.ts";
import { failures, STARTED } from "../../output/responses.ts";
import { SandboxIdParams } from "../../schemas.ts";

export const pauseSandbox = defineOperation({
  id: "pauseSandbox",
  method: "POST",
  path: "/sandboxes/{sandboxID}/pause",
  tag: "sandboxes",
  summary: "Pause a sandbox",
  description:
    "Answers when the sandbox no longer uses memory or CPU. A pause keeps the files, and with the memory also the processes. Simultaneous calls " +
    "all get 204; a call for a paused sandbox gets 409. After 503 the sandbox keeps running.",
  auth: ["apiKey"],
  scope: "sandboxes:write",
  params: SandboxIdParams,
  body: Type.Object(
    {
      memory: Type.Optional(
        Type.Boolean({ description: "False: keep the files only. The sandbox boots when it is resumed.", default: true }),
      ),
      requireHealthyGuest: Type.Optional(
        Type.Boolean({ description: "True: refuse with 503 if the agent in the sandbox does not answer.", default: false }),
      ),
    },
    { title: "PauseSandbox" },
  ),
  bodyOptional: true,
  responses: { 204: { description: "The sandbox is paused.", headers: STARTED.headers ?? {} }, ...failures(404, 409, 422, 501, 503) },
  repeatable: true,
  handle: async (services, request) => {
    const { memory = true, requireHealthyGuest = false } = request.body ?? {};
    const options = { memory, requireHealthyGuest, signal: request.signal };
    const { memoryLost } = await services.sandboxes.pause(actingOf(request.caller), sandboxIdOf(request.params), options);
    return { status: 204, headers: memoryLostHeaders(memoryLost) };
  },
});
