// A real agent for tests: the assembled tree, started as a sandbox starts it except for the port.

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readlinkSync } from "node:fs";
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { type Client, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { agentCommand } from "@skerry/agent";
import { type AssembledAgent, assembleAgent } from "@skerry/agent/assemble";
import { Filesystem } from "@skerry/wire/filesystem";
import { Process } from "@skerry/wire/process";

export interface AgentUnderTest extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  readonly tree: string;
  readonly process: Client<typeof Process>;
  readonly filesystem: Client<typeof Filesystem>;
  transport(options?: { binary?: boolean; headers?: Record<string, string> }): Transport;
  fetch(path: string, init?: RequestInit): Promise<Response>;
  init(body: object, headers?: Record<string, string>): Promise<Response>;
}

let assembling: Promise<AssembledAgent> | undefined;

const STALE_MS = 60 * 60 * 1000;

/** One tree for all tests and runs of one state of the source; trees of older states go after an hour. */
export function assembledTree(): Promise<AssembledAgent> {
  assembling ??= assemble(join(tmpdir(), "skerry-test-agent"));
  return assembling;
}

async function assemble(outDir: string): Promise<AssembledAgent> {
  const agent = await assembleAgent({ outDir, workDir: join(tmpdir(), "skerry-test-agent-work") });
  for (const name of await readdir(outDir)) {
    const other = join(outDir, name);
    const isStale = name !== agent.digest && Date.now() - (await stat(other)).mtimeMs > STALE_MS;
    if (isStale) await rm(other, { recursive: true, force: true });
  }
  return agent;
}

export async function startAgentUnderTest(options: { env?: Record<string, string> } = {}): Promise<AgentUnderTest> {
  const tree = (await assembledTree()).path;
  const arch = process.arch === "arm64" ? "arm64" : "x64";
  const command = [...agentCommand(arch, { root: tree, port: 0 }), "--host", "127.0.0.1", "--announce"];
  const cwd = await mkdtemp(join(tmpdir(), "skerry-agent-test-"));
  // In a sandbox the agent is process 1 and inherits orphans. Here tini takes them (-s).
  const child = spawn(join(tree, "bin/tini"), ["-s", "--", ...command], {
    cwd,
    env: { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", ...options.env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const port = Number(await firstLine(child));
  const url = `http://127.0.0.1:${port}`;
  const transport: AgentUnderTest["transport"] = ({ binary = false, headers = {} } = {}) =>
    createConnectTransport({
      baseUrl: url,
      httpVersion: "1.1",
      useBinaryFormat: binary,
      interceptors: [
        (next) => (request) => {
          for (const [name, value] of Object.entries(headers)) request.header.set(name, value);
          return next(request);
        },
      ],
    });
  return {
    url,
    port,
    pid: child.pid ?? 0,
    tree,
    transport,
    process: createClient(Process, transport()),
    filesystem: createClient(Filesystem, transport()),
    fetch: (path, init) => fetch(url + path, init),
    init: (body, headers = {}) => fetch(`${url}/init`, { method: "POST", body: JSON.stringify(body), headers }),
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
      await rm(cwd, { recursive: true, force: true });
    },
  };
}

async function firstLine(child: ChildProcess): Promise<string> {
  if (!child.stdout) throw new Error("no stdout");
  for await (const line of createInterface({ input: child.stdout })) return line;
  throw new Error("the agent ended before it announced its port");
}

export interface RunOutcome {
  readonly stdout: string;
  readonly stderr: string;
  readonly pty: string;
  readonly exitCode: number;
  readonly error: string | undefined;
  readonly pid: number;
}

/** Starts a program and collects everything up to its end. */
export async function run(
  agent: AgentUnderTest,
  cmd: string,
  args: string[] = [],
  more: { envs?: Record<string, string>; cwd?: string; stdin?: boolean; user?: string } = {},
): Promise<RunOutcome> {
  const { user, stdin = false, ...config } = more;
  const headers = user === undefined ? {} : { Authorization: `Basic ${Buffer.from(`${user}:`).toString("base64")}` };
  const output = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[], pty: [] as Uint8Array[] };
  let pid = 0;
  for await (const { event } of agent.process.start({ process: { cmd, args, ...config }, stdin }, { headers })) {
    const inner = event?.event;
    if (inner?.case === "start") pid = inner.value.pid;
    if (inner?.case === "data" && inner.value.output.case) output[inner.value.output.case].push(inner.value.output.value);
    if (inner?.case === "end") {
      const { exitCode, error } = inner.value;
      return { stdout: text(output.stdout), stderr: text(output.stderr), pty: text(output.pty), exitCode, error, pid };
    }
  }
  throw new Error("the stream ended without an end event");
}

function text(chunks: readonly Uint8Array[]): string {
  return Buffer.concat(chunks).toString("utf8");
}

/** The agent's own process: whoever listens on its port. */
export function agentPid(agent: AgentUnderTest): number {
  const port = agent.port.toString(16).toUpperCase().padStart(4, "0");
  const inode = execFileSync("awk", [`$2 ~ /:${port}$/ && $4 == "0A" { print $10 }`, "/proc/net/tcp"], { encoding: "utf8" }).trim();
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      if (descriptorsOf(Number(pid)).includes(`socket:[${inode}]`)) return Number(pid);
    } catch {
      // Gone meanwhile.
    }
  }
  throw new Error("no process listens on the agent's port");
}

/** What a process's descriptors are open on. */
export function descriptorsOf(pid: number): string[] {
  return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/${pid}/fd/${fd}`)];
    } catch {
      // Closed meanwhile.
      return [];
    }
  });
}
