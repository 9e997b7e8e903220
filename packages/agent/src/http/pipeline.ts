// What every request passes, in this order: CORS, access token, user of the Basic credentials, router.

import type { IncomingMessage, ServerResponse } from "node:http";
import { asError } from "@skerry/base";
import { credentialProblem } from "../basic-user.ts";
import type { Logger } from "../log.ts";
import type { AgentState } from "../state.ts";
import { assertAccess } from "./access.ts";
import { applyCors } from "./cors.ts";
import { type Exchange, HttpError, sendError } from "./exchange.ts";
import { type RouteTable, route } from "./router.ts";

export interface Pipeline {
  readonly state: AgentState;
  readonly routes: RouteTable;
  /** Routes under these prefixes are loaded when one of them is first asked for. */
  readonly rpc: { readonly prefixes: readonly string[]; readonly load: () => Promise<RouteTable> };
  readonly log: Logger;
}

export async function handle(pipeline: Pipeline, req: IncomingMessage, res: ServerResponse): Promise<void> {
  try {
    if (applyCors(req, res)) return;
    const [path = "/", ...rest] = (req.url ?? "/").split("?");
    const exchange: Exchange = { req, res, path, query: new URLSearchParams(rest.join("?")), state: pipeline.state };
    assertAccess(pipeline.state, req, path);
    const isRpc = pipeline.rpc.prefixes.some((prefix) => path.startsWith(prefix));
    // The refusal of a stream is a message of that stream: rpc.ts looks and sends it.
    const isStream = isRpc && req.headers["content-type"]?.startsWith("application/connect+");
    const problem = isStream ? undefined : credentialProblem(req.headers.authorization);
    if (problem === undefined) await route(isRpc ? await pipeline.rpc.load() : pipeline.routes, exchange);
    else res.writeHead(401, { "Content-Type": "application/json" }).end(JSON.stringify({ code: "unauthenticated", message: problem }));
  } catch (error) {
    fail(pipeline, { req, res }, error);
  }
}

function fail(pipeline: Pipeline, { req, res }: { req: IncomingMessage; res: ServerResponse }, error: unknown): void {
  // The caller is gone, or got part of an answer: a broken connection is the only honest end.
  if (res.headersSent || res.destroyed) {
    res.destroy();
    return;
  }
  if (!req.complete) {
    // Closed with a part of the request unread, the connection would be reset, and the answer lost on its way.
    res.shouldKeepAlive = true;
    req.resume();
  }
  if (error instanceof HttpError) {
    sendError(res, error);
    return;
  }
  pipeline.log("request failed", error);
  sendError(res, new HttpError(500, asError(error).message));
}
