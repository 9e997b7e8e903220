// The steps of every request, in this order: CORS, access token, user of the Basic credentials, router.

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
  /** Routes below these prefixes are loaded on the first request for one of them. */
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
    // In a stream an error is a message of the stream: rpc.ts does this check and sends the error.
    const isStream = isRpc && req.headers["content-type"]?.startsWith("application/connect+");
    const problem = isStream ? undefined : credentialProblem(req.headers.authorization);
    if (problem === undefined) await route(isRpc ? await pipeline.rpc.load() : pipeline.routes, exchange);
    else res.writeHead(401, { "Content-Type": "application/json" }).end(JSON.stringify({ code: "unauthenticated", message: problem }));
  } catch (error) {
    fail(pipeline, { req, res }, error);
  }
}

function fail(pipeline: Pipeline, { req, res }: { req: IncomingMessage; res: ServerResponse }, error: unknown): void {
  // The client has gone, or already has a part of the response: breaking the connection is the only honest end.
  if (res.headersSent || res.destroyed) {
    res.destroy();
    return;
  }
  if (!req.complete) {
    // Closing a connection with unread data resets it, and the response would be lost. So read the rest of the request.
    res.shouldKeepAlive = true;
    req.resume();
  }
  if (error instanceof HttpError) {
    sendError(res, error);
    return;
  }
  pipeline.log("a request failed", error);
  sendError(res, new HttpError(500, asError(error).message));
}
