import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { compose } from "./http/compose.ts";
import { control } from "./http/control.ts";
import { download } from "./http/download.ts";
import { envs } from "./http/envs.ts";
import type { Route } from "./http/exchange.ts";
import { health } from "./http/health.ts";
import { init } from "./http/init.ts";
import { metrics } from "./http/metrics.ts";
import { handle } from "./http/pipeline.ts";
import { rpcRoutes } from "./http/rpc.ts";
import { upload } from "./http/upload.ts";
import { stderrLogger } from "./log.ts";
import { loadLibc } from "./native/libc.ts";
import { Reaper } from "./native/reaper.ts";
import { ProcessTable } from "./process/table.ts";
import { AgentState } from "./state.ts";

/** Longer than any proxy in front keeps an idle connection, so that it is never we who close one that a request is on. */
const KEEP_ALIVE_MS = 640_000;

const CONTROL_PATHS = ["/freeze", "/unfreeze", "/collapse", "/fsfreeze", "/fsthaw", "/upgrade"];

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

export async function startAgent(options: AgentOptions): Promise<Agent> {
  // Modes of uploads and directories are part of the contract, whatever the runtime left us.
  process.umask(0o022);
  const state = new AgentState({ path: options.path });
  const table = new ProcessTable(new Reaper());
  const rpc = rpcRoutes({ state, table, tini: `${options.root}/bin/tini` });
  // The first /init comes before any process, and its caller should not wait for this.
  const firstInit: typeof init = async (exchange) => {
    await init(exchange);
    setImmediate(() => void loadLibc());
  };
  const pipeline = {
    state,
    log: stderrLogger,
    rpcPaths: new Set(rpc.map(([path]) => path)),
    routes: new Map<string, Readonly<Partial<Record<"GET" | "POST", Route>>>>([
      ["/health", { GET: health }],
      ["/metrics", { GET: metrics }],
      ["/envs", { GET: envs }],
      ["/files", { GET: download, POST: upload }],
      ["/files/compose", { POST: compose }],
      ["/init", { POST: firstInit }],
      ...CONTROL_PATHS.map((path): [string, { POST: Route }] => [path, { POST: control }]),
      ...rpc.map(([path, route]): [string, { POST: Route }] => [path, { POST: route }]),
    ]),
  };
  const server = createServer({ requestTimeout: 0, keepAliveTimeout: KEEP_ALIVE_MS, keepAliveTimeoutBuffer: 0 }, (req, res) => {
    void handle(pipeline, req, res);
  });
  await listen(server, options);
  return { port: (server.address() as AddressInfo).port, close: () => close(server) };
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
