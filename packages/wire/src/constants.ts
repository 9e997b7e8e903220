/** The port on which every sandbox's agent listens, inside the sandbox. */
export const AGENT_PORT = 49983;

/**
 * The agent version that clients see as `envdVersion`. Official SDKs switch features on by comparing it,
 * so it names the newest behaviour that this agent really has (see docs/compatibility.md).
 */
export const AGENT_VERSION = "0.6.4";

/** Deprecated everywhere but still required in responses; a constant for every client. */
export const CLIENT_ID = "6532622b";

/** Where the node tells an agent to end the largest processes of its sandbox, which is over its memory. */
export const AGENT_RELIEVE_PATH = "/relieve";

/** Where the node waits for the programs that a sandbox runs because its generation has changed. */
export const AGENT_GENERATION_PATH = "/generation";

/** How long those may take together. */
export const GENERATION_PROGRAMS_LIMIT_MS = 10_000;

/** A file in a sandbox's root by which its agent says that the guest has asked for the end: what is not asked for is kept. */
export const END_MARK = ".skerry-ended";

/** Agent paths that only the platform may call: the edge answers 404 for them on the agent's port. */
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
]);

/** On each call of the node's RPC: the id that the caller's database was given. */
export const CLUSTER_ID_HEADER = "Skerry-Cluster-Id";
