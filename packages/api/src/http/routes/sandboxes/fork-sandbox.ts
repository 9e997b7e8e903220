import { type Static, Type } from "typebox";
import { invalid } from "../../../errors.ts";
import { type ForkResult, newForkIds } from "../../../sandboxes/fork-sandbox.ts";
import type { ShownSandbox } from "../../../sandboxes/service.ts";
import { answerOnce } from "../../idempotency/answer-once.ts";
import { recoverFork } from "../../idempotency/recover.ts";
import { actingOf, sandboxIdOf, teamOf } from "../../input/request-values.ts";
import { defineOperation, type OperationRequest, type OperationResponse } from "../../operation.ts";
import { encodeError } from "../../output/encode-error.ts";
import { encodeSandbox, memoryLostHeaders } from "../../output/encode-sandbox.ts";
import { failures, STARTED } from "../../output/responses.ts";
import { ErrorSchema, Int32, SandboxIdParams, SandboxSchema } from "../../schemas.ts";
import type { ApiServices } from "../../services.ts";

const DEFAULT_TIMEOUT_SECONDS = 300;
const MAX_COUNT = 100;

const ForkResultSchema = Type.Object(
  { sandbox: Type.Optional(SandboxSchema), error: Type.Optional(ErrorSchema) },
  { title: "SandboxForkResult", description: "Exactly one of the two." },
);

const ForkSchema = Type.Object(
  {
    timeout: Type.Optional(
      Int32({ description: "Seconds until the time of each fork is over.", minimum: 0, default: DEFAULT_TIMEOUT_SECONDS }),
    ),
    count: Type.Optional(Int32({ description: `How many; 1 to ${MAX_COUNT}.`, default: 1 })),
  },
  { title: "ForkSandbox" },
);

export const forkSandbox = defineOperation({
  id: "forkSandbox",
  method: "POST",
  path: "/sandboxes/{sandboxID}/fork",
  tag: "sandboxes",
  summary: "Fork a sandbox",
  description:
    "Starts copies of it, which have its files, its memory, its metadata and its options, and an id, tokens and a time of their own. A running " +
    "sandbox stands still for a moment and goes on; a paused one stays paused. One result for each fork, in order, some of which may be failures.",
  auth: ["apiKey"],
  params: SandboxIdParams,
  body: ForkSchema,
  bodyOptional: true,
  idempotent: true,
  responses: {
    201: { description: "What became of each fork.", schema: Type.Array(ForkResultSchema), headers: STARTED.headers ?? {} },
    ...failures(404, 409, 422, 429, 501, 503, 504),
  },
  repeatable: false,
  handle: answerFork,
});

async function answerFork(
  services: ApiServices,
  request: OperationRequest<{ sandboxID: string }, unknown, Static<typeof ForkSchema> | undefined>,
): Promise<OperationResponse> {
  const { timeout = DEFAULT_TIMEOUT_SECONDS, count = 1 } = request.body ?? {};
  if (count < 1) throw invalid("Count must be at least 1");
  if (count > MAX_COUNT) throw invalid(`Count cannot be greater than ${MAX_COUNT}`);
  if (timeout === 0) throw invalid("Timeout must be greater than 0");
  services.sandboxes.assertTimeout(teamOf(request.caller).id, timeout);
  const id = sandboxIdOf(request.params);
  return await answerOnce(services, request, {
    asked: { operation: "fork", sandbox: id, timeout, count },
    subjects: () => newForkIds(count),
    recover: (ids) => recoverFork(services, ids),
    work: async (ids, signal) => {
      const { results, memoryLost } = await services.sandboxes.fork(actingOf(request.caller), id, {
        timeoutMs: timeout * 1000,
        ids,
        signal,
      });
      const ofForks = results.map((result) => (result.kind === "started" ? result.started.memoryLost : undefined));
      const lost = [memoryLost, ...ofForks].find((reason) => reason);
      return { status: 201, body: results.map((result) => encodeResult(services, result)), headers: memoryLostHeaders(lost) };
    },
  });
}

function encodeResult(services: ApiServices, result: ForkResult): Static<typeof ForkResultSchema> {
  if (result.kind === "started") return { sandbox: encodeSandbox(services, result.started.sandbox as ShownSandbox) };
  return { error: encodeError(result.error, undefined).body };
}
