// A real agent for tests: the assembled tree, started as in a sandbox, apart from the port.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { type Client, type Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { AGENT_ROOT, agentCommand } from "@skerry/agent";
import type { AssembledAgent } from "@skerry/agent/assemble";
import { Filesystem } from "@skerry/wire/filesystem";
import { Process } from "@skerry/wire/process";
import { afterAll } from "vitest";

export interface AgentUnderTest extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** The pid of the agent. */
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

/** All tests and runs of one state of the source share one tree. Trees of older states are removed after an hour. */
export function assembledTree(): Promise<AssembledAgent> {
  assembling ??= assemble(join(tmpdir(), "skerry-test-agent"));
  return assembling;
}

async function assemble(outDir: string): Promise<AssembledAgent> {
  const { assembleAgent } = await import("@skerry/agent/assemble");
  const agent = await assembleAgent({ outDir, workDir: join(tmpdir(), "skerry-test-agent-work") });
  for (const name of await readdir(outDir)) {
    const other = join(outDir, name);
    const isStale = name !== agent.digest && Date.now() - (await stat(other)).mtimeMs > STALE_MS;
    if (isStale) await rm(other, { recursive: true, force: true });
  }
  return agent;
}

/** One agent for all tests of a file. */
export async function agentOfFile(): Promise<AgentUnderTest> {
  const agent = await startAgentUnderTest();
  afterAll(() => agent[Symbol.asyncDispose]());
  return agent;
}

export async function startAgentUnderTest(options: { env?: Record<string, string> } = {}): Promise<AgentUnderTest> {
  // These tests also run inside sandboxes, which have a tree.
  const tree = existsSync(AGENT_ROOT) ? AGENT_ROOT : (await assembledTree()).path;
  const arch = process.arch === "arm64" ? "arm64" : "x64";
  const command = [...agentCommand(arch, { root: tree, port: 0 }), "--host", "127.0.0.1", "--announce"];
  const cwd = await mkdtemp(join(tmpdir(), "skerry-agent-test-"));
  // In a sandbox the agent is process 1 and inherits orphans. Here tini adopts them (-s).
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
    pid: onlyChildOf(child.pid ?? 0),
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

/** Starts a program and collects its output and its end. */
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

function onlyChildOf(parent: number): number {
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      if (Number(/^PPid:\t(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) === parent) return Number(pid);
    } catch {
      // The process has ended by now.
    }
  }
  throw new Error(`process ${parent} has no child`);
}

/** The error of a call that fails. */
export async function failure(promise: Promise<unknown>): Promise<{ code: Code; message: string }> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => ConnectError.from(reason),
  );
  if (!error) throw new Error("nothing failed");
  return { code: error.code, message: error.rawMessage };
}

/** The files that a process has open. */
export function descriptorsOf(pid: number): string[] {
  return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/${pid}/fd/${fd}`)];
    } catch {
      // The descriptor was closed by now.
      return [];
    }
  });
}
