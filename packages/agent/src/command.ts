/** Where the read-only tree of `assembleAgent` is mounted in every sandbox. */
export const AGENT_ROOT = "/.skerry";

export type AgentArch = "x64" | "arm64";

/** The dynamic loader's file name, which is part of each architecture's ABI. */
export function loaderName(arch: AgentArch): string {
  return arch === "x64" ? "ld-linux-x86-64.so.2" : "ld-linux-aarch64.so.1";
}

// One helper thread for V8 rather than four: gVisor makes threads dear, and the agent has little garbage.
// The built-in heap image comes from a read-only mount that we made; reading all of it for a checksum costs 3 ms.
// A small space for new objects: after 2,000 streams in two bursts the agent has 180 MiB instead of 317, at the same speed; both
// give back what is left over (103 MiB) within 13 s.
// No collections on a timer: the agent gives back what it does not need itself (IdleMemory), and V8's own ran in every sandbox
// half a second after it was brought back, for 35 ms: a third of what bringing it back took the processors.
const NODE_FLAGS: readonly string[] = [
  "--v8-pool-size=1",
  "--no-verify-snapshot-checksum",
  "--disable-sigusr1",
  "--max-semi-space-size=4",
  "--no-memory-reducer",
];

/**
 * Node.js through our own loader and libraries, so that it starts in an image with another libc or with none.
 * `--library-path` rather than LD_LIBRARY_PATH: the environment would reach the guest's own programs.
 */
export function nodeArguments(arch: AgentArch, root: string): readonly string[] {
  return [`${root}/lib/${loaderName(arch)}`, "--library-path", `${root}/lib`, `${root}/bin/node`, ...NODE_FLAGS];
}

/**
 * The argv of a sandbox's first process: the agent is process 1 and reaps what guests leave behind itself. An init before it would
 * cost a create one more start of a program, in gVisor about 30 ms.
 * No secret is in here; the access token arrives by `POST /init`.
 */
export function agentCommand(arch: AgentArch, options: { root?: string; port?: number } = {}): readonly string[] {
  const root = options.root ?? AGENT_ROOT;
  const port = options.port === undefined ? [] : ["--port", String(options.port)];
  return [...nodeArguments(arch, root), `${root}/agent.js`, ...port];
}
