import { type Static, Type } from "typebox";
import { notBuilt } from "../../../errors.ts";
import { sandboxIdOf, teamOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { OptionFields, OutgoingFields, withOutgoing } from "../../sandbox-options.ts";
import { SandboxIdParams } from "../../schemas.ts";

const NotBuiltFields = {
  egressProxy: Type.Optional(Type.Union([Type.Object({ address: Type.String() }), Type.Null()], { description: "Not built yet." })),
  rules: Type.Optional(Type.Object({}, { description: "Not built yet." })),
  dnsServers: Type.Optional(Type.Array(Type.String(), { description: "Not built yet." })),
};
const BodySchema = Type.Object({ ...OptionFields, ...OutgoingFields, ...NotBuiltFields }, { title: "SandboxNetworkUpdate" });

export const setSandboxNetwork = defineOperation({
  id: "setSandboxNetwork",
  method: "PUT",
  path: "/sandboxes/{sandboxID}/network",
  tag: "sandboxes",
  summary: "Replace the rules for a sandbox's outgoing traffic",
  description:
    "Answers when the rules hold. A running sandbox loses the connections that they do not allow. A paused one has them when it is resumed. " +
    "An absent list is empty. Whether the sandbox has internet access at all stays as it is unless it is given. After a failure the former rules hold.",
  auth: ["apiKey"],
  params: SandboxIdParams,
  body: BodySchema,
  responses: { 204: { description: "The rules hold." }, ...failures(404, 409, 501, 503) },
  repeatable: true,
  handle: async (services, request) => {
    const option = notBuiltIn(request.body);
    if (option !== undefined) throw notBuilt(`the option ${option}`);
    // Refused before the sandbox is looked up.
    withOutgoing({}, request.body);
    await services.sandboxes.changeOptions(teamOf(request.caller).id, sandboxIdOf(request.params), {
      change: (options) => withOutgoing(options, request.body),
      signal: request.signal,
    });
    return { status: 204 };
  },
});

function notBuiltIn({ egressProxy, rules = {}, dnsServers = [] }: Static<typeof BodySchema>): string | undefined {
  if (egressProxy !== undefined && egressProxy !== null) return "egressProxy";
  if (Object.keys(rules).length > 0) return "rules";
  return dnsServers.length > 0 ? "dnsServers" : undefined;
}
