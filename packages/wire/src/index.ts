export {
  AGENT_COPY_PATH,
  AGENT_GENERATION_PATH,
  AGENT_OUTPUT_PATH,
  AGENT_PORT,
  AGENT_RELIEVE_PATH,
  AGENT_RESERVED_PATHS,
  AGENT_VERSION,
  CLIENT_ID,
  CLUSTER_ID_HEADER,
  END_MARK,
  GENERATION_PROGRAMS_LIMIT_MS,
  LOG_OUTPUT_VARIABLE,
} from "./constants.ts";
export { ERROR_CATALOG, type ErrorCode, type ErrorEntry } from "./error-catalog.ts";
export { parseExpiration, type SignedFileRequest, signatureDigest, signedText } from "./file-signature.ts";
export {
  hostNameOf,
  isSandboxHost,
  type PathResult,
  parsePathTarget,
  parsePort,
  parseTarget,
  type Target,
  type TargetHeaders,
  type TargetResult,
} from "./host.ts";
export { imageIdFrom, isUuid, parseSandboxId, type SandboxId, sandboxIdFrom } from "./ids.ts";
export { ALL_IPV4, type Ipv4Range, ipv4RangeText, isInRanges, parseIpv4Range, withoutRanges } from "./ipv4-ranges.ts";
export { LINK_COOKIE, LINK_PARAMETER, LINK_TOKEN_FIELD, type LinkProof, linkIdIn } from "./link-token.ts";
export { DISK_FULL_MESSAGE, NODE_ERRORS, type NodeErrorCode } from "./node-errors.ts";
export {
  BUNDLE_VARIABLES,
  NO_SITE,
  SITE_VARIABLES,
  type SiteNetwork,
  TRUST_STORES,
  withoutSiteCertificates,
  withSiteCertificates,
} from "./site-network.ts";
