import { NewSandboxV1Schema } from "../../input/new-sandbox.ts";
import { defineOperation } from "../../operation.ts";
import { failures, STARTED } from "../../output/responses.ts";
import { assertPrivateIsSecure } from "../../sandbox-options.ts";
import { answerCreate } from "./create-sandbox.ts";

const DEFAULT_TIMEOUT_SECONDS = 15;

export const createSandboxV1 = defineOperation({
  id: "createSandboxV1",
  method: "POST",
  path: "/sandboxes",
  tag: "sandboxes",
  summary: "Create a sandbox (older clients)",
  description: "As `POST /v2/sandboxes`, but the default timeout is 15 seconds.",
  deprecated: true,
  auth: ["apiKey"],
  scope: "sandboxes:write",
  keepsToMetadata: true,
  body: NewSandboxV1Schema,
  idempotent: true,
  responses: { 201: STARTED, ...failures(404, 409, 413, 422, 429, 501, 503, 504) },
  repeatable: false,
  handle: (services, request) => {
    assertPrivateIsSecure(request.body);
    return answerCreate(services, request, DEFAULT_TIMEOUT_SECONDS);
  },
});
