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
    "Answers when it uses neither memory nor CPU any more. What it keeps: its files, and with its memory its processes. Several calls at once all " +
    "answer 204; one for a sandbox that is paused already answers 409. After 503 it runs on as before.",
  auth: ["apiKey"],
  params: SandboxIdParams,
  body: Type.Object(
    {
      memory: Type.Optional(Type.Boolean({ description: "False: its files only; it boots again when it is resumed.", default: true })),
      requireHealthyGuest: Type.Optional(
        Type.Boolean({ description: "True: rather not, with 503, when the API inside it does not answer.", default: false }),
      ),
    },
    { title: "PauseSandbox" },
  ),
  bodyOptional: true,
  responses: { 204: { description: "It is paused.", headers: STARTED.headers ?? {} }, ...failures(404, 409, 422, 501, 503) },
  repeatable: true,
  handle: async (services, request) => {
    const { memory = true, requireHealthyGuest = false } = request.body ?? {};
    const options = { memory, requireHealthyGuest, signal: request.signal };
    const { memoryLost } = await services.sandboxes.pause(actingOf(request.caller), sandboxIdOf(request.params), options);
    return { status: 204, headers: memoryLostHeaders(memoryLost) };
  },
});
