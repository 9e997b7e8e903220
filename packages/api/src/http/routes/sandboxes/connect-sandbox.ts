import { Type } from "typebox";
import type { Connected } from "../../../sandboxes/service.ts";
import { actingOf, sandboxIdOf, teamOf } from "../../input/request-values.ts";
import { defineOperation, type OperationRequest, type OperationResponse } from "../../operation.ts";
import { encodeSandbox, memoryLostHeaders } from "../../output/encode-sandbox.ts";
import { failures, STARTED } from "../../output/responses.ts";
import { Int32, SandboxIdParams, SandboxSchema } from "../../schemas.ts";
import type { ApiServices } from "../../services.ts";

const DEFAULT_TIMEOUT_SECONDS = 300;

export const memoryOption = Type.Optional(
  Type.Boolean({ description: "False: start a paused sandbox from its disk only. No effect on a running sandbox." }),
);

export const connectSandbox = defineOperation({
  id: "connectSandbox",
  method: "POST",
  path: "/v2/sandboxes/{sandboxID}/connect",
  tag: "sandboxes",
  summary: "Connect to a sandbox",
  description:
    "Ensures that the sandbox runs for at least `timeout` seconds from now, and returns its tokens. Never shortens the timeout. " +
    "A paused sandbox is resumed. A pause or snapshot under way is awaited first.",
  auth: ["apiKey"],
  scope: "sandboxes:write",
  params: SandboxIdParams,
  body: Type.Object(
    {
      timeout: Type.Optional(
        Int32({ description: "Minimum time until the timeout, in seconds from now.", minimum: 0, default: DEFAULT_TIMEOUT_SECONDS }),
      ),
      memory: memoryOption,
    },
    { title: "ConnectSandbox" },
  ),
  bodyOptional: true,
  responses: {
    200: { description: "The sandbox was already running.", schema: SandboxSchema },
    201: STARTED,
    ...failures(404, 409, 429, 501, 503, 504),
  },
  repeatable: true,
  handle: (services, request) => answerConnect(services, request, request.body?.timeout ?? DEFAULT_TIMEOUT_SECONDS),
});

export async function answerConnect(
  services: ApiServices,
  request: Pick<
    OperationRequest<{ sandboxID: string }, unknown, { memory?: boolean } | undefined>,
    "caller" | "params" | "body" | "signal"
  >,
  timeoutSeconds: number,
): Promise<OperationResponse> {
  const id = sandboxIdOf(request.params);
  await services.sandboxes.assertTimeout(teamOf(request.caller).id, timeoutSeconds);
  const options = { timeoutMs: timeoutSeconds * 1000, memory: request.body?.memory ?? true, signal: request.signal };
  return answerConnected(services, await services.sandboxes.connect(actingOf(request.caller), id, options));
}

export function answerConnected(services: ApiServices, connected: Connected): OperationResponse {
  return {
    status: connected.resumed ? 201 : 200,
    body: encodeSandbox(services.encoding, connected.sandbox),
    headers: memoryLostHeaders(connected.memoryLost),
  };
}
