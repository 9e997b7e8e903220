import { Type } from "typebox";
import { encodeSandbox } from "../encode-sandbox.ts";
import { defineOperation, type OperationRequest, type OperationResponse } from "../operation.ts";
import { sandboxIdOf, teamOf } from "../request-values.ts";
import { failures } from "../responses.ts";
import { Int32, SandboxIdParams, SandboxSchema } from "../schemas.ts";
import type { ApiServices } from "../services.ts";

const DEFAULT_TIMEOUT_SECONDS = 300;

export const memoryOption = Type.Optional(
  Type.Boolean({ description: "False: start a paused sandbox from its disk alone. No effect on a running one." }),
);

export const connectSandbox = defineOperation({
  id: "connectSandbox",
  method: "POST",
  path: "/v2/sandboxes/{sandboxID}/connect",
  tag: "sandboxes",
  summary: "Connect to a sandbox",
  description:
    "Makes sure that it lives for at least `timeout` seconds from now, and answers with its tokens again. Never shortens its time.",
  auth: ["apiKey"],
  params: SandboxIdParams,
  body: Type.Object(
    {
      timeout: Type.Optional(Int32({ description: "Seconds that it should live at least.", minimum: 0, default: DEFAULT_TIMEOUT_SECONDS })),
      memory: memoryOption,
    },
    { title: "ConnectSandbox" },
  ),
  bodyOptional: true,
  responses: { 200: { description: "It is running.", schema: SandboxSchema }, ...failures(404, 409, 429, 503, 504) },
  repeatable: true,
  handle: (services, request) => answerConnect(services, request, request.body?.timeout ?? DEFAULT_TIMEOUT_SECONDS),
});

export async function answerConnect(
  services: ApiServices,
  request: Pick<OperationRequest<{ sandboxID: string }, unknown, unknown>, "caller" | "params">,
  timeoutSeconds: number,
): Promise<OperationResponse> {
  const id = sandboxIdOf(request.params);
  services.sandboxes.assertTimeout(timeoutSeconds);
  const sandbox = await services.sandboxes.connect(teamOf(request.caller).id, id, timeoutSeconds * 1000);
  return { status: 200, body: encodeSandbox(services, sandbox) };
}
