/** Mount point of the agent's read-only tree (`assembleAgent`) in every sandbox. */
export const AGENT_ROOT = "/.skerry";

export type AgentArch = "x64" | "arm64";

/** The dynamic loader's file name, which is part of each architecture's ABI. */
export function loaderName(arch: AgentArch): string {
  return arch === "x64" ? "ld-linux-x86-64.so.2" : "ld-linux-aarch64.so.1";
}

const NODE_FLAGS: readonly string[] = [
  // One worker thread for V8 instead of four: threads are expensive in gVisor, and the agent produces little garbage.
  "--v8-pool-size=1",
  // The built-in heap snapshot is on a read-only mount of the platform. Reading all of it to verify a checksum costs 3 ms.
  "--no-verify-snapshot-checksum",
  // SIGUSR1 would start Node's inspector, through which a guest could control the agent.
  "--disable-sigusr1",
  // A small space for new objects. After 2,000 streams in two bursts the agent uses 180 MiB instead of 317, at the same speed. Both
  // release unused memory (down to 103 MiB) within 13 s.
  "--max-semi-space-size=4",
  // No garbage collection on a timer: the agent releases unused memory itself (IdleMemory). V8's timer fired in every sandbox half a
  // second after a resume, and its 35 ms were a third of the CPU time of a resume.
  "--no-memory-reducer",
];

/**
 * The argv that starts Node.js with the tree's own loader and libraries, so that it runs in an image with another libc or with none.
 * It uses `--library-path`, because guest programs would inherit LD_LIBRARY_PATH.
 */
export function nodeArguments(arch: AgentArch, root: string): readonly string[] {
  return [`${root}/lib/${loaderName(arch)}`, "--library-path", `${root}/lib`, `${root}/bin/node`, ...NODE_FLAGS];
}

/**
 * The argv of a sandbox's first process. The agent is process 1 and reaps orphaned guest processes itself. A separate init would
 * add the start of one more program to every create, about 30 ms in gVisor.
 * The arguments contain no secret: the access token arrives with `POST /init`.
 */
export function agentCommand(arch: AgentArch, options: { root?: string; port?: number } = {}): readonly string[] {
  const root = options.root ?? AGENT_ROOT;
  const port = options.port === undefined ? [] : ["--port", String(options.port)];
  return [...nodeArguments(arch, root), `${root}/agent.js`, ...port];
}
