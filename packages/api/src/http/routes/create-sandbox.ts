import { parseTemplateReference } from "../../templates/reference.ts";
import { resolveTemplate } from "../../templates/resolve.ts";
import { encodeSandbox } from "../encode-sandbox.ts";
import { assertNewSandbox, type NewSandboxBody, NewSandboxSchema } from "../new-sandbox.ts";
import { defineOperation, type OperationRequest, type OperationResponse } from "../operation.ts";
import { teamOf } from "../request-values.ts";
import { failures } from "../responses.ts";
import { SandboxSchema } from "../schemas.ts";
import type { ApiServices } from "../services.ts";

const DEFAULT_TIMEOUT_SECONDS = 300;

export const createSandbox = defineOperation({
  id: "createSandbox",
  method: "POST",
  path: "/v2/sandboxes",
  tag: "sandboxes",
  summary: "Create a sandbox",
  description:
    "Answers when the sandbox is up and its API can be used. It lives for `timeout` seconds from then on. " +
    "All traffic to the API inside it must carry the `envdAccessToken` of the answer.",
  auth: ["apiKey"],
  body: NewSandboxSchema,
  responses: { 201: { description: "It is running.", schema: SandboxSchema }, ...failures(404, 409, 413, 429, 501, 503, 504) },
  repeatable: false,
  handle: (services, request) => answerCreate(services, request, DEFAULT_TIMEOUT_SECONDS),
});

/** Both generations of the operation; they differ in the time that a sandbox gets when none is asked for. */
export async function answerCreate(
  services: ApiServices,
  request: Pick<OperationRequest<unknown, unknown, NewSandboxBody>, "caller" | "body" | "signal">,
  defaultTimeoutSeconds: number,
): Promise<OperationResponse> {
  const { body } = request;
  assertNewSandbox(body);
  const timeoutSeconds = body.timeout ?? defaultTimeoutSeconds;
  services.sandboxes.assertTimeout(timeoutSeconds);
  const team = teamOf(request.caller);
  const template = await resolveTemplate(services.store.templates, team, parseTemplateReference(body.templateID));
  const sandbox = await services.sandboxes.create({
    team,
    template,
    timeoutMs: timeoutSeconds * 1000,
    metadata: body.metadata,
    envVars: body.envVars ?? {},
    allowInternetAccess: body.allow_internet_access,
    signal: request.signal,
  });
  return { status: 201, body: encodeSandbox(services, sandbox) };
}
