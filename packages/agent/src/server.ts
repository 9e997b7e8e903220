import { rmSync } from "node:fs";
import { stat } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setImmediate } from "node:timers/promises";
import { errnoOf, IdleMemory } from "@skerry/base";
import { AGENT_GENERATION_PATH, AGENT_RELIEVE_PATH } from "@skerry/wire";
import { endOnRequest } from "./end-on-request.ts";
import { GENERATION_FILE, GENERATION_HOOKS, Generation } from "./generation/generation.ts";
import { installFastBase64 } from "./globals/fast-base64.ts";
import { installLightHeaders } from "./globals/light-headers.ts";
import { control } from "./http/control/control.ts";
import { envs } from "./http/control/envs.ts";
import { generation } from "./http/control/generation.ts";
import { health } from "./http/control/health.ts";
import { init } from "./http/control/init.ts";
import { relieve } from "./http/control/relieve.ts";
import type { Route } from "./http/exchange.ts";
import { handle } from "./http/pipeline.ts";
import { stderrLogger } from "./log.ts";
import { isLibcLoaded, libc, loadLibc } from "./native/libc.ts";
import type { Reaper } from "./native/reaper.ts";
import { AgentState } from "./state.ts";

/** Longer than any proxy in front keeps an idle connection, so that it is never we who close one that a request is on. */
const KEEP_ALIVE_MS = 640_000;

const CONTROL_PATHS = ["/freeze", "/unfreeze", "/collapse", "/fsfreeze", "/fsthaw", "/upgrade"];

/** Asked again and again while nothing happens; an agent that answers nothing else is idle. */
const PROBES: ReadonlySet<string> = new Set(["/health", "/metrics"]);

export interface AgentOptions {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  /** The agent's own tree. */
  readonly root: string;
  /** PATH of guest processes that set no other. */
  readonly path: string;
}

export interface Agent {
  readonly port: number;
  close(): Promise<void>;
}

/**
 * Preconditions: everything that answers the first /health and /init is imported statically and is small; all else is
 * loaded when it is first used, or after the first /init, whichever comes first. The time until then is part of every
 * sandbox's start.
 */
export async function startAgent(options: AgentOptions): Promise<Agent> {
  // Modes of uploads and directories are part of the contract, whatever the runtime left us.
  process.umask(0o022);
  installLightHeaders();
  installFastBase64();
  const state = new AgentState({ path: options.path });
  const loadReaper = once(async () => new (await import("./native/reaper.ts")).Reaper());
  const loadRpc = once(async () =>
    (await import("./http/rpc.ts")).rpcRoutes({ state, tini: `${options.root}/bin/tini`, reaper: await loadReaper() }),
  );
  if (process.pid === 1) state.generation = ownGeneration(state, loadReaper);
  const prepareRest = once(async () => {
    // The node's mark that kept gVisor from covering an empty /tmp.
    rmSync("/tmp/.skerry", { force: true });
    if (process.pid === 1) endOnRequest();
    // Threads of the pool are made by its first task: here and now, not when guests have used up what this sandbox may have.
    const startThreads = () => stat("/");
    for (const load of [loadRpc, loadLibc, loadDownload, loadUpload, startThreads, () => state.processLimit()]) {
      // One at a time, so that requests get in between.
      await setImmediate();
      await load();
    }
  });
  const firstInit: Route = async (exchange) => {
    await init(exchange);
    prepareRest().catch((error: unknown) => stderrLogger("a part of the agent could not be loaded", error));
  };
  const pipeline = {
    state,
    log: stderrLogger,
    rpc: { prefixes: ["/process.Process/", "/filesystem.Filesystem/"], load: loadRpc },
    routes: new Map<string, Readonly<Partial<Record<"GET" | "POST", Route>>>>([
      ["/health", { GET: health }],
      ["/metrics", { GET: async (exchange) => (await import("./http/control/metrics.ts")).metrics(exchange) }],
      ["/envs", { GET: envs }],
      ["/files", { GET: async (exchange) => (await loadDownload())(exchange), POST: async (exchange) => (await loadUpload())(exchange) }],
      ["/files/compose", { POST: async (exchange) => (await import("./http/files/compose.ts")).compose(exchange) }],
      ["/init", { POST: firstInit }],
      [AGENT_GENERATION_PATH, { GET: generation }],
      [AGENT_RELIEVE_PATH, { POST: relieve }],
      ...CONTROL_PATHS.map((path): [string, { POST: Route }] => [path, { POST: control }]),
    ]),
  };
  const idleMemory = new IdleMemory({
    worthBytes: 4 * 1024 * 1024,
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

function signalAll(signal: NodeJS.Signals): void {
  try {
    process.kill(-1, signal);
  } catch (error) {
    // Nothing runs yet.
    if (errnoOf(error) !== "ESRCH") throw error;
  }
}

/** Preconditions: this is process 1 of a sandbox, so all other processes are its guests. */
function ownGeneration(state: AgentState, loadReaper: () => Promise<Reaper>): Generation {
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

async function loadDownload(): Promise<Route> {
  return (await import("./http/files/download.ts")).download;
}

async function loadUpload(): Promise<Route> {
  return (await import("./http/files/upload.ts")).upload;
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
    server.listen({ host: options.host, port: options.port, backlog: 1024 }, resolve);
  });
}

function close(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve, reject) => server.close((error) => (error ? reject(error) : resolve())));
}
