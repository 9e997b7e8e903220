import { Type } from "typebox";
import { defineOperation } from "../../operation.ts";
import { failures, STARTED } from "../../output/responses.ts";
import { Int32, SandboxIdParams, SandboxSchema } from "../../schemas.ts";
import { answerConnect, memoryOption } from "./connect-sandbox.ts";

export const connectSandboxV1 = defineOperation({
  id: "connectSandboxV1",
  method: "POST",
  path: "/sandboxes/{sandboxID}/connect",
  tag: "sandboxes",
  summary: "Connect to a sandbox (older clients)",
  description: "As `POST /v2/sandboxes/{sandboxID}/connect`, but `timeout` is required.",
  deprecated: true,
  auth: ["apiKey"],
  scope: "sandboxes:write",
  params: SandboxIdParams,
  body: Type.Object(
    { timeout: Int32({ description: "Minimum time until the timeout, in seconds from now.", minimum: 0 }), memory: memoryOption },
    { title: "ConnectSandboxV1" },
  ),
  responses: {
    200: { description: "The sandbox was already running.", schema: SandboxSchema },
    201: STARTED,
    ...failures(404, 409, 429, 501, 503, 504),
  },
  repeatable: true,
  handle: (services, request) => answerConnect(services, request, request.body.timeout),
});
