// Starts the agent's HTTP server.
//
// The time until the first /health and /init is part of every sandbox's start. So the code for these two is small and imported
// statically. All other code is loaded on first use or after the first /init, whichever comes first.

import { rmSync } from "node:fs";
import { stat } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setImmediate } from "node:timers/promises";
import { errnoOf, IdleMemory } from "@skerry/base";
import { endOnRequest } from "./end-on-request.ts";
import { GENERATION_FILE, GENERATION_HOOKS, Generation } from "./generation/generation.ts";
import { installFastBase64 } from "./globals/fast-base64.ts";
import { installLightHeaders } from "./globals/light-headers.ts";
import { handle } from "./http/pipeline.ts";
import { createRoutes, loadDownload, loadUpload } from "./http/routes.ts";
import { stderrLogger } from "./log.ts";
import { isLibcLoaded, libc, loadLibc } from "./native/libc.ts";
import type { Reaper } from "./native/reaper.ts";
import { AgentState } from "./state.ts";

/** Idle timeout of connections. It exceeds that of every proxy in front, so the agent never closes one that carries a new request. */
const KEEP_ALIVE_MS = 640_000;

/** Backlog of connections that the agent has not accepted yet. */
const BACKLOG = 1024;

/** Minimum heap growth that justifies a garbage collection of the idle agent. */
const WORTH_COLLECTING_BYTES = 4 * 1024 * 1024;

/** Routes that the platform polls. An agent that serves only these counts as idle. */
const PROBES: ReadonlySet<string> = new Set(["/health", "/metrics"]);

export interface AgentOptions {
  readonly host: string;
  /** 0 selects any free port. */
  readonly port: number;
  /** The folder that holds the agent's own files. */
  readonly root: string;
  /** PATH of guest processes that set none themselves. */
  readonly path: string;
}

export interface Agent {
  readonly port: number;
  close(): Promise<void>;
}

export async function startAgent(options: AgentOptions): Promise<Agent> {
  // The file modes of uploads and new directories are part of the contract, so the agent does not inherit a umask from the runtime.
  process.umask(0o022);
  installLightHeaders();
  installFastBase64();
  const state = new AgentState({ path: options.path });
  const loadReaper = once(async () => new (await import("./native/reaper.ts")).Reaper());
  const loadRpc = once(async () =>
    (await import("./http/rpc.ts")).rpcRoutes({ state, tini: `${options.root}/bin/tini`, reaper: await loadReaper() }),
  );
  if (process.pid === 1) state.generation = createGeneration(state, loadReaper);
  const prepareRest = once(() => prepare(state, loadRpc));
  const routes = createRoutes(() => {
    prepareRest().catch((error: unknown) => stderrLogger("the agent could not load one of its parts", error));
  });
  const rpc = { prefixes: ["/process.Process/", "/filesystem.Filesystem/"], load: loadRpc };
  const pipeline = { state, log: stderrLogger, rpc, routes };
  const idleMemory = new IdleMemory({
    worthBytes: WORTH_COLLECTING_BYTES,
    trim: () => {
      if (isLibcLoaded()) libc().mallocTrim(0);
    },
  });
  const server = createServer({ requestTimeout: 0, keepAliveTimeout: KEEP_ALIVE_MS, keepAliveTimeoutBuffer: 0 }, (req, res) => {
    if (!PROBES.has(req.url ?? "")) {
      idleMemory.touch();
      res.once("close", () => idleMemory.touch());
    }
    void handle(pipeline, req, res);
  });
  server.on("connect", (req, client, head) => {
    void import("./ports/relay-port.ts").then(({ relayPort }) => relayPort(req, client, head));
  });
  await listen(server, options);
  state.generation?.prepare();
  return { port: (server.address() as AddressInfo).port, close: () => close(server) };
}

/** Does after the first /init what later requests would otherwise wait for. */
async function prepare(state: AgentState, loadRpc: () => Promise<unknown>): Promise<void> {
  // The node put this file there so that gVisor does not mount a file system of its own on an empty /tmp.
  rmSync("/tmp/.skerry", { force: true });
  if (process.pid === 1) endOnRequest();
  // The first task creates the threads of the pool. Later, guests may have used up the sandbox's process limit.
  const startThreads = () => stat("/");
  for (const load of [loadRpc, loadLibc, loadDownload, loadUpload, startThreads, () => state.processLimit()]) {
    // One part per round of the event loop, so that requests are answered in between.
    await setImmediate();
    await load();
  }
}

/** Preconditions: the agent is process 1 of a sandbox, so all other processes belong to the guest. */
function createGeneration(state: AgentState, loadReaper: () => Promise<Reaper>): Generation {
  return new Generation({
    file: GENERATION_FILE,
    hooksDir: GENERATION_HOOKS,
    signalAll,
    runPrograms: async (programs, generation) => {
      const { runPrograms } = await import("./generation/run-programs.ts");
      await runPrograms({ state, reaper: await loadReaper(), programs, generation });
    },
    log: stderrLogger,
  });
}

function signalAll(signal: NodeJS.Signals): void {
  try {
    process.kill(-1, signal);
  } catch (error) {
    // ESRCH: no other process is running.
    if (errnoOf(error) !== "ESRCH") throw error;
  }
}

function once<T>(load: () => Promise<T>): () => Promise<T> {
  let loading: Promise<T> | undefined;
  return () => {
    loading ??= load();
    return loading;
  };
}

function listen(server: Server, options: AgentOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host: options.host, port: options.port, backlog: BACKLOG }, resolve);
  });
}

function close(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve, reject) => server.close((error) => (error ? reject(error) : resolve())));
}
