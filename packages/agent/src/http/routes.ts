// The agent's HTTP routes, apart from RPC. Only what answers the first /health and /init is imported statically.

import { AGENT_COPY_PATH, AGENT_GENERATION_PATH, AGENT_OUTPUT_PATH, AGENT_RELIEVE_PATH } from "@skerry/wire";
import { init } from "./control/init.ts";
import { relieve } from "./control/relieve.ts";
import { envs, generation, health } from "./control/status.ts";
import { type Exchange, HttpError, type Route } from "./exchange.ts";
import type { RouteTable } from "./router.ts";

/** Control routes of agents in virtual machines. The platform may call them; this agent has nothing to freeze or upgrade. */
const UNSUPPORTED_PATHS = ["/freeze", "/unfreeze", "/collapse", "/fsfreeze", "/fsthaw", "/upgrade"];

export const loadDownload = async (): Promise<Route> => (await import("./files/download.ts")).download;
export const loadUpload = async (): Promise<Route> => (await import("./files/upload.ts")).upload;

/** `onInit` is called after each /init that was answered without an error. */
export function createRoutes(onInit: () => void): RouteTable {
  const initRoute: Route = async (exchange) => {
    await init(exchange);
    onInit();
  };
  return new Map<string, Readonly<Partial<Record<"GET" | "POST", Route>>>>([
    ["/health", { GET: health }],
    ["/metrics", { GET: async (exchange) => (await import("./control/metrics.ts")).metrics(exchange) }],
    ["/envs", { GET: envs }],
    ["/files", { GET: async (exchange) => (await loadDownload())(exchange), POST: async (exchange) => (await loadUpload())(exchange) }],
    ["/files/compose", { POST: async (exchange) => (await import("./files/compose.ts")).compose(exchange) }],
    ["/init", { POST: initRoute }],
    [AGENT_GENERATION_PATH, { GET: generation }],
    [AGENT_RELIEVE_PATH, { POST: relieve }],
    [AGENT_OUTPUT_PATH, { GET: async (exchange) => (await import("./control/output.ts")).output(exchange) }],
    [AGENT_COPY_PATH, { POST: async (exchange) => (await import("./control/copy.ts")).copy(exchange) }],
    ...UNSUPPORTED_PATHS.map((path): [string, { POST: Route }] => [path, { POST: refuse }]),
  ]);
}

function refuse({ path }: Exchange): never {
  throw new HttpError(501, `POST ${path} is not implemented by this agent`);
}
