import { newSandboxId } from "../../../sandboxes/create-sandbox.ts";
import { parseTemplateReference } from "../../../templates/reference.ts";
import { limitOf, metadataFor } from "../../input/caller-metadata.ts";
import { assertNewSandbox, type NewSandboxBody, NewSandboxSchema } from "../../input/new-sandbox.ts";
import { actingOf, repeatable, teamOf } from "../../input/request-values.ts";
import { defineOperation, type OperationRequest, type OperationResponse } from "../../operation.ts";
import { encodeSandbox, memoryLostHeaders } from "../../output/encode-sandbox.ts";
import { failures, STARTED } from "../../output/responses.ts";
import { optionsFrom } from "../../sandbox-options.ts";
import type { ApiServices } from "../../services.ts";

const DEFAULT_TIMEOUT_SECONDS = 300;

export const createSandbox = defineOperation({
  id: "createSandbox",
  method: "POST",
  path: "/v2/sandboxes",
  tag: "sandboxes",
  summary: "Create a sandbox",
  description:
    "Answers when the sandbox runs and its API accepts requests. The timeout counts from the answer. " +
    "All traffic to the API inside the sandbox must carry the `envdAccessToken` of the answer.",
  auth: ["apiKey"],
  scope: "sandboxes:write",
  keepsToMetadata: true,
  body: NewSandboxSchema,
  idempotent: true,
  responses: { 201: STARTED, ...failures(404, 409, 413, 422, 429, 501, 503, 504) },
  repeatable: false,
  handle: (services, request) => answerCreate(services, request, DEFAULT_TIMEOUT_SECONDS),
});

/** Both versions of the operation. They differ in the default timeout. */
export async function answerCreate(
  services: ApiServices,
  request: Pick<OperationRequest<unknown, unknown, NewSandboxBody>, "caller" | "body" | "signal" | "headers">,
  defaultTimeoutSeconds: number,
): Promise<OperationResponse> {
  const { caller } = request;
  const metadata = metadataFor(caller, request.body.metadata);
  const body: NewSandboxBody = metadata === undefined ? request.body : { ...request.body, metadata };
  const proxies = services.proxies.rulesFor(teamOf(caller).id);
  assertNewSandbox(body, proxies);
  const timeoutSeconds = body.timeout ?? defaultTimeoutSeconds;
  await services.sandboxes.assertTimeout(teamOf(caller).id, timeoutSeconds);
  await services.sandboxes.assertNetwork(teamOf(caller).id, optionsFrom(body, proxies));
  const template = parseTemplateReference(body.templateID);
  return await services.idempotency.answer(repeatable(request), {
    // The same for both versions, so that a client may repeat its request with the other one.
    asked: { operation: "create", timeoutSeconds, body },
    subjects: () => [newSandboxId()],
    recover: async ([id = ""]) => {
      const sandbox = await services.sandboxes.recoverCreate(id);
      return sandbox && { status: 201, body: encodeSandbox(services.encoding, sandbox) };
    },
    work: async ([id = newSandboxId()], signal) => {
      const created = await services.sandboxes.create({
        by: actingOf(caller),
        team: teamOf(caller),
        id,
        template,
        timeoutMs: timeoutSeconds * 1000,
        metadata: body.metadata,
        startsFrom: limitOf(caller),
        envVars: body.envVars ?? {},
        options: optionsFrom(body, proxies),
        autoPause: body.autoPause ?? false,
        autoPauseMemory: body.autoPauseMemory ?? true,
        autoResume: body.autoResume?.enabled ?? false,
        volumeMounts: body.volumeMounts,
        signal,
      });
      return { status: 201, body: encodeSandbox(services.encoding, created.sandbox), headers: memoryLostHeaders(created.memoryLost) };
    },
  });
}
