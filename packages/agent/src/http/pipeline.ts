// What every request passes, in this order: CORS, access token, user of the Basic credentials, router.

import type { IncomingMessage, ServerResponse } from "node:http";
import { ConnectError } from "@connectrpc/connect";
import { asError } from "@skerry/base";
import type { Logger } from "../log.ts";
import { basicName, basicUser } from "../request-user.ts";
import type { AgentState } from "../state.ts";
import { assertAccess } from "./access.ts";
import { applyCors } from "./cors.ts";
import { type Exchange, HttpError, sendError } from "./exchange.ts";
import { type RouteTable, route } from "./router.ts";

export interface Pipeline {
  readonly state: AgentState;
  readonly routes: RouteTable;
  /** Paths that report a bad user in their own form. */
  readonly rpcPaths: ReadonlySet<string>;
  readonly log: Logger;
}

export async function handle(pipeline: Pipeline, req: IncomingMessage, res: ServerResponse): Promise<void> {
  try {
    if (applyCors(req, res)) return;
    const [path = "/", ...rest] = (req.url ?? "/").split("?");
    const exchange: Exchange = { req, res, path, query: new URLSearchParams(rest.join("?")), state: pipeline.state };
    assertAccess(pipeline.state, req, path);
    if (!pipeline.rpcPaths.has(path) && !userIsKnown(req, res)) return;
    await route(pipeline.routes, exchange);
  } catch (error) {
    fail(pipeline, res, error);
  }
}

function userIsKnown(req: IncomingMessage, res: ServerResponse): boolean {
  const name = basicName(req.headers.authorization);
  if (name === undefined) return true;
  try {
    basicUser(name);
    return true;
  } catch (error) {
    if (!(error instanceof ConnectError)) throw error;
    res.writeHead(401, { "Content-Type": "application/json" }).end(JSON.stringify({ code: "unauthenticated", message: error.rawMessage }));
    return false;
  }
}

function fail(pipeline: Pipeline, res: ServerResponse, error: unknown): void {
  // The caller is gone, or got part of an answer: a broken connection is the only honest end.
  if (res.headersSent || res.destroyed) {
    res.destroy();
    return;
  }
  if (error instanceof HttpError) {
    sendError(res, error);
    return;
  }
  pipeline.log("request failed", error);
  sendError(res, new HttpError(500, asError(error).message));
}
