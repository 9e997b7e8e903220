// The options of a sandbox as callers see them: their names in a create request and in a sandbox's details. The rest of the API passes the
// options on as one value and does not look into it.

import { randomBytes } from "node:crypto";
import { isIP } from "node:net";
import { AGENT_PORT, LOG_OUTPUT_VARIABLE } from "@skerry/wire";
import {
  authorityIdOf,
  headerRulesOf,
  networkLimitsOf,
  outgoingProxyOf,
  type SandboxOptions,
  withHeaderRules,
  withNetworkLimits,
  withOutgoingProxy,
} from "@skerry/wire/node";
import { type Static, Type } from "typebox";
import { invalid } from "../errors.ts";
import { EgressProxySchema, egressProxyFrom, encodeEgressProxy, type ProxyRules, ShownEgressProxySchema } from "./input/egress-proxy.ts";
import { encodeHeaderRules, HeaderRulesSchema, headerRulesFrom } from "./input/header-rules.ts";
import { hostTemplateProblem } from "./input/host-template.ts";
import { encodeNetworkLimits, NetworkLimitsSchema, networkLimitsFrom } from "./input/network-limits.ts";
import { assertNameServers, assertOutgoing } from "./input/outgoing-addresses.ts";

const addresses = (description: string) => Type.Optional(Type.Array(Type.String(), { description }));

/** Fields of a create request. */
export const OptionFields = {
  allow_internet_access: Type.Optional(
    Type.Boolean({ description: "False: the sandbox cannot open connections to the outside, except to what `network.allowOut` lists." }),
  ),
};

const AddressFields = {
  allowOut: addresses(
    "What the sandbox may reach although `denyOut` denies it: addresses and prefixes, and names such as `example.com`, `*.example.com` for all names below it, and `*`. Names need `0.0.0.0/0` in `denyOut`. At most 1000.",
  ),
  denyOut: addresses(
    "Addresses and prefixes that the sandbox may not reach. `0.0.0.0/0` is everything, of IPv4 and of IPv6. At most 1000.",
  ),
  rules: Type.Optional(HeaderRulesSchema),
  dnsServers: Type.Optional(
    Type.Array(Type.String(), {
      description:
        "IPv4 addresses of name servers that stay open, on every port, when `allowOut` has names. Absent: the platform's own, which answers " +
        "for these names alone. An empty list: none. At most 10.",
    }),
  ),
};
/** Fields of `network` in a create request, and of a request that changes what a sandbox may reach. */
export const OutgoingFields = { ...AddressFields, egressProxy: EgressProxySchema, limits: NetworkLimitsSchema };

/** Maximum number of ports in one list. */
const MAX_PORTS = 100;

/** Fields of `network` in a create request that concern incoming traffic. They never change. */
export const IngressFields = {
  allowPublicTraffic: Type.Optional(
    Type.Union([Type.Boolean(), Type.Null()], {
      description:
        "False: requests to ports of the sandbox must carry its `trafficAccessToken`. The API inside the sandbox has its own token.",
    }),
  ),
  maskRequestHost: Type.Optional(
    Type.String({ description: "The `Host` that servers in the sandbox see: `host[:port]`, with `${PORT}` for the port of the request." }),
  ),
  httpsPorts: Type.Optional(
    Type.Array(Type.Integer({ minimum: 1, maximum: 65535 }), {
      description: "Ports on which servers in the sandbox speak TLS.",
      maxItems: MAX_PORTS,
    }),
  ),
};

const ShownNetworkFields = { ...IngressFields, ...AddressFields, egressProxy: ShownEgressProxySchema, limits: NetworkLimitsSchema };

/** Fields of a sandbox's details. */
export const ShownOptionFields = {
  allowInternetAccess: Type.Optional(Type.Boolean({ description: "As given; absent if it was not given." })),
  network: Type.Optional(Type.Object(ShownNetworkFields, { description: "As given; absent if nothing of it was given." })),
};

/** Of a create request. */
const EnvVars = Type.Optional(Type.Record(Type.String(), Type.String()));
const Options = Type.Object({
  ...OptionFields,
  envVars: EnvVars,
  network: Type.Optional(Type.Object({ ...IngressFields, ...OutgoingFields })),
});
const ShownOptions = Type.Object(ShownOptionFields);
const Ingress = Type.Object(IngressFields);
const Outgoing = Type.Object({ ...OptionFields, ...OutgoingFields });

/** The options that a create request asks for. Throws for options that cannot be met. */
export function optionsFrom({ network, ...body }: Static<typeof Options>, proxies: ProxyRules): SandboxOptions {
  const { envVars, ...rest } = body;
  const logged = envVars?.[LOG_OUTPUT_VARIABLE] === "1" ? { logOutput: true } : {};
  return { ...withOutgoing(ingressFrom(network ?? {}), { ...network, ...rest }, proxies), ...logged };
}

function ingressFrom({ allowPublicTraffic, maskRequestHost, httpsPorts = [] }: Static<typeof Ingress>): SandboxOptions {
  const problem = maskRequestHost === undefined ? undefined : hostTemplateProblem(maskRequestHost);
  if (problem !== undefined) throw invalid(`mask request host is not valid: ${problem}`);
  if (httpsPorts.includes(AGENT_PORT)) throw invalid(`https ports are not valid: port ${AGENT_PORT} belongs to the API inside the sandbox`);
  return {
    ...(typeof allowPublicTraffic === "boolean" ? { allowPublicTraffic } : {}),
    ...(maskRequestHost === undefined ? {} : { maskRequestHost }),
    ...(httpsPorts.length === 0 ? {} : { httpsPorts: [...new Set(httpsPorts)] }),
  };
}

/** Throws if the body asks for a private sandbox without a token for its agent, which older clients can express. */
export function assertPrivateIsSecure(body: Static<typeof Options> & { readonly secure?: boolean }): void {
  if (body.network?.allowPublicTraffic !== false || body.secure === true) return;
  throw invalid("You cannot create a sandbox without public access unless you enable secure envd access via 'secure' flag.");
}

/** The options of a sandbox after a change of what it may reach. Throws for what cannot be met. An absent list is empty. */
export function withOutgoing(options: SandboxOptions, change: Static<typeof Outgoing>, proxies: ProxyRules): SandboxOptions {
  const { allowOut: _allowed, denyOut: _denied, dnsServers: _servers, ...rest } = options;
  const { allowOut = [], denyOut = [], rules: given = {}, dnsServers, allow_internet_access: allowInternetAccess } = change;
  const rules = headerRulesFrom(given);
  const proxy = egressProxyFrom(change.egressProxy, { rules: proxies, credentialId: randomId(), options });
  assertOutgoing({ allowed: allowOut, denied: denyOut });
  assertNameServers(dnsServers ?? []);
  const changed = {
    ...rest,
    ...(allowInternetAccess === undefined ? {} : { allowInternetAccess }),
    ...(allowOut.length > 0 ? { allowOut } : {}),
    ...(denyOut.length > 0 ? { denyOut } : {}),
    ...(dnsServers ? { dnsServers: { addresses: dnsServers } } : {}),
  };
  // The programs of the sandbox trust the authority that it has.
  // As internet access, they stay as they are unless the change has them.
  const limited = change.limits === undefined ? changed : withNetworkLimits(changed, networkLimitsFrom(change.limits));
  return withOutgoingProxy(withHeaderRules(limited, authorityIdOf(options) || randomId(), rules), proxy);
}

function randomId(): string {
  return randomBytes(8).toString("hex");
}

/** The options of a sandbox for its details. */
export function encodeOptions(options: SandboxOptions): Static<typeof ShownOptions> {
  const { allowInternetAccess, allowOut, denyOut, dnsServers, allowPublicTraffic, maskRequestHost, httpsPorts } = options;
  const rules = headerRulesOf(options);
  const proxy = outgoingProxyOf(options);
  const limits = encodeNetworkLimits(networkLimitsOf(options));
  const network = {
    ...(allowOut ? { allowOut: [...allowOut] } : {}),
    ...(denyOut ? { denyOut: [...denyOut] } : {}),
    ...(rules.length > 0 ? { rules: encodeHeaderRules(rules) } : {}),
    ...(dnsServers ? { dnsServers: [...(dnsServers.addresses ?? [])] } : {}),
    ...(proxy ? { egressProxy: encodeEgressProxy(proxy) } : {}),
    ...(allowPublicTraffic === undefined ? {} : { allowPublicTraffic }),
    ...(maskRequestHost === undefined ? {} : { maskRequestHost }),
    ...(httpsPorts ? { httpsPorts: [...httpsPorts] } : {}),
    ...(limits ? { limits } : {}),
  };
  return {
    ...(allowInternetAccess === undefined ? {} : { allowInternetAccess }),
    ...(Object.keys(network).length > 0 ? { network } : {}),
  };
}

/** What a sandbox may reach, as its events tell it: addresses and names apart. */
export function egressOf({ allowInternetAccess, allowOut = [], denyOut = [] }: SandboxOptions) {
  const isAddress = (entry: string) => isIP(entry.split("/")[0] ?? "") !== 0;
  const denied = denyOut.length === 0 && allowInternetAccess === false ? ["0.0.0.0/0"] : denyOut;
  return {
    allowed_cidrs: allowOut.filter(isAddress),
    denied_cidrs: denied,
    allowed_domains: allowOut.filter((entry) => !isAddress(entry)),
  };
}
