import { actingOf, sandboxIdOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { SandboxIdParams } from "../../schemas.ts";

export const killSandbox = defineOperation({
  id: "killSandbox",
  method: "DELETE",
  path: "/sandboxes/{sandboxID}",
  tag: "sandboxes",
  summary: "Kill a sandbox",
  description:
    "Answers when nothing of it is left, of a paused one neither. A pause or snapshot under way is waited for. Several calls at once all answer 204; a later one answers 404.",
  auth: ["apiKey"],
  params: SandboxIdParams,
  responses: { 204: { description: "It is gone." }, ...failures(404, 409, 503) },
  repeatable: true,
  handle: async (services, request) => {
    await services.sandboxes.kill(actingOf(request.caller), sandboxIdOf(request.params), request.arrivedAt);
    return { status: 204 };
  },
});
