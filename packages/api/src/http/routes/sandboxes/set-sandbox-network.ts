import { Type } from "typebox";
import { sandboxIdOf, teamOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { OptionFields, OutgoingFields, withOutgoing } from "../../sandbox-options.ts";
import { SandboxIdParams } from "../../schemas.ts";

const BodySchema = Type.Object({ ...OptionFields, ...OutgoingFields }, { title: "SandboxNetworkUpdate" });

export const setSandboxNetwork = defineOperation({
  id: "setSandboxNetwork",
  method: "PUT",
  path: "/sandboxes/{sandboxID}/network",
  tag: "sandboxes",
  summary: "Replace the rules for a sandbox's outgoing traffic",
  description:
    "Answers when the rules hold. A running sandbox loses the connections that they do not allow. A paused one has them when it is resumed. " +
    "An absent list is empty. Whether the sandbox has internet access at all, and its limits, stay as they are unless they are given. After a failure the former rules hold.",
  auth: ["apiKey"],
  scope: "sandboxes:write",
  params: SandboxIdParams,
  body: BodySchema,
  responses: { 204: { description: "The rules hold." }, ...failures(404, 409, 503) },
  repeatable: true,
  handle: async (services, request) => {
    const { id: teamId } = teamOf(request.caller);
    const proxies = services.proxies.rulesFor(teamId);
    // Refused before the sandbox is looked up.
    const chosen = withOutgoing({}, request.body, proxies);
    await services.sandboxes.assertNetwork(teamId, chosen);
    await services.sandboxes.changeOptions(teamId, sandboxIdOf(request.params), {
      change: (options) => withOutgoing(options, request.body, proxies),
      signal: request.signal,
    });
    return { status: 204 };
  },
});
