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
    "Answers when everything of the sandbox is deleted, also if it was paused. A pause or snapshot under way is awaited first. Simultaneous calls all get 204, later ones 404.",
  auth: ["apiKey"],
  scope: "sandboxes:write",
  params: SandboxIdParams,
  responses: { 204: { description: "The sandbox is deleted." }, ...failures(404, 409, 503) },
  repeatable: true,
  handle: async (services, request) => {
    await services.sandboxes.kill(actingOf(request.caller), sandboxIdOf(request.params), request.arrivedAt);
    return { status: 204 };
  },
});
