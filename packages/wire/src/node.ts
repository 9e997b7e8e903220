export * from "../gen/node/node_pb.js";
export {
  authorityIdOf,
  filledIn,
  type HeaderRule,
  headerRulesOf,
  type Placeholder,
  placeholdersIn,
  ruleForHost,
  withHeaderRules,
} from "./header-rules.ts";
export { chosenLimits, lowerLimits, type NetworkLimits, networkLimitsOf, withNetworkLimits } from "./network-limits.ts";
export {
  type OutgoingProxy,
  outgoingProxyOf,
  type ProxyTls,
  proxyHostOf,
  type SealedPassword,
  sealedPasswordOf,
  withOutgoingProxy,
  withoutSealedPassword,
} from "./outgoing-proxy.ts";
export { changedAfter, decodeOptions, encodeOptions, isReplacedBy, parseOptions, type SandboxOptions } from "./sandbox-options.ts";
