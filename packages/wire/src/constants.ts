/** The port that the agent listens on, inside each sandbox. */
export const AGENT_PORT = 49983;

/**
 * The agent version that clients see as `envdVersion`. Official SDKs compare it to enable features, so it must be the newest version
 * whose behaviour this agent implements (see docs/compatibility.md).
 */
export const AGENT_VERSION = "0.6.4";

/** The deprecated `clientID`, which responses must still contain. It is the same for all sandboxes. */
export const CLIENT_ID = "6532622b";

/** Agent path: the node asks the agent to kill the largest processes of a sandbox that exceeds its memory limit. */
export const AGENT_RELIEVE_PATH = "/relieve";

/** Agent path: the node waits for the hooks that a sandbox runs when its generation changes. */
export const AGENT_GENERATION_PATH = "/generation";

/** Agent path: the node places the archive of a COPY step in the sandbox of a build. */
export const AGENT_COPY_PATH = "/copy";

/** Agent path: the node follows what logged processes write. */
export const AGENT_OUTPUT_PATH = "/output";

/** A process whose environment has it as "1" writes to the log of its sandbox. In a create request, it asks the platform for that log. */
export const LOG_OUTPUT_VARIABLE = "SKERRY_LOG_OUTPUT";

/** Time limit for all hooks together. The node waits a little longer than this. */
export const GENERATION_PROGRAMS_LIMIT_MS = 10_000;

/** A file in the root of a sandbox that its agent creates when the guest requests the end. After any other end, the node keeps the sandbox. */
export const END_MARK = ".skerry-ended";

/** Agent paths that are reserved for the platform. The edge answers 404 for them on the agent's port. */
export const AGENT_RESERVED_PATHS: ReadonlySet<string> = new Set([
  "/init",
  "/freeze",
  "/unfreeze",
  "/fsfreeze",
  "/fsthaw",
  "/collapse",
  "/upgrade",
  AGENT_RELIEVE_PATH,
  AGENT_GENERATION_PATH,
  AGENT_COPY_PATH,
  AGENT_OUTPUT_PATH,
]);

/** Header of each call of the node's RPC: the cluster id in the caller's database. */
export const CLUSTER_ID_HEADER = "Skerry-Cluster-Id";
