import { type Static, Type } from "typebox";
import { invalid } from "../../../errors.ts";
import { type ForkResult, newForkIds } from "../../../sandboxes/fork-sandbox.ts";
import { asShown } from "../../../sandboxes/shown-sandbox.ts";
import { actingOf, repeatable, sandboxIdOf, teamOf } from "../../input/request-values.ts";
import { defineOperation, type OperationRequest, type OperationResponse } from "../../operation.ts";
import { encodeError } from "../../output/encode-error.ts";
import { type Encoding, encodeSandbox, memoryLostHeaders } from "../../output/encode-sandbox.ts";
import { failures, STARTED } from "../../output/responses.ts";
import { ErrorSchema, Int32, SandboxIdParams, SandboxSchema } from "../../schemas.ts";
import type { ApiServices } from "../../services.ts";

const DEFAULT_TIMEOUT_SECONDS = 300;
const MAX_COUNT = 100;

const ForkResultSchema = Type.Object(
  { sandbox: Type.Optional(SandboxSchema), error: Type.Optional(ErrorSchema) },
  { title: "SandboxForkResult", description: "Exactly one of the two fields is present." },
);

const ForkSchema = Type.Object(
  {
    timeout: Type.Optional(
      Int32({ description: "Timeout of each fork in seconds, counted from the answer.", minimum: 0, default: DEFAULT_TIMEOUT_SECONDS }),
    ),
    count: Type.Optional(Int32({ description: `Number of forks, 1 to ${MAX_COUNT}.`, default: 1 })),
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
    "Starts copies of the sandbox. Each copy has its files, memory, metadata and options, and an id, tokens and a timeout of its own. A running " +
    "sandbox is frozen for a moment; a paused sandbox stays paused. Returns one result per fork, in order. Some of them may be failures.",
  auth: ["apiKey"],
  scope: "sandboxes:write",
  params: SandboxIdParams,
  body: ForkSchema,
  bodyOptional: true,
  idempotent: true,
  responses: {
    201: { description: "The result of each fork.", schema: Type.Array(ForkResultSchema), headers: STARTED.headers ?? {} },
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
  await services.sandboxes.assertTimeout(teamOf(request.caller).id, timeout);
  const id = sandboxIdOf(request.params);
  return await services.idempotency.answer(repeatable(request), {
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
      return { status: 201, body: results.map((result) => encodeResult(services.encoding, result)), headers: memoryLostHeaders(lost) };
    },
  });
}

/** Forks that were not running when their process died count as failed. */
async function recoverFork(services: ApiServices, ids: readonly string[]): Promise<OperationResponse | undefined> {
  const made = await Promise.all(ids.map((id) => services.sandboxes.recoverCreate(id)));
  if (made.every((sandbox) => sandbox === undefined)) return undefined;
  const error = { code: 500, message: "Failed to place sandbox: the platform was restarted while it started" };
  return { status: 201, body: made.map((sandbox) => (sandbox ? { sandbox: encodeSandbox(services.encoding, sandbox) } : { error })) };
}

function encodeResult(encoding: Encoding, result: ForkResult): Static<typeof ForkResultSchema> {
  if (result.kind === "started") return { sandbox: encodeSandbox(encoding, asShown(result.started.sandbox)) };
  return { error: encodeError(result.error, undefined).body };
}
