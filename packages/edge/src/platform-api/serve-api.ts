// Requests to `https://api.{domain}`: clients send them to the TLS listener when they know nothing but the domain.

import type { IncomingMessage, ServerResponse } from "node:http";
import { TLSSocket } from "node:tls";
import { type Logger, RelaySocket } from "@skerry/base";
import { hostNameOf } from "@skerry/wire";
import { apiUnreachable, badRequest } from "../answers/refusal.ts";
import { sendRefusal } from "../answers/send-refusal.ts";
import { failConnection } from "../connections/fail-connection.ts";
import { forward } from "../forwarding/forward.ts";
import { valuesOf } from "../forwarding/headers.ts";
import { messageOf, type RequestHead } from "../routing/route-request.ts";
import type { Limits } from "../serve.ts";
import type { Sender } from "../signatures/client-address.ts";

const CONNECT_TIMEOUT_MS = 10_000;

/** Where the platform API is, and under which name clients reach it through the edge. */
export interface ApiRoute {
  /** Domain of sandbox host names. A port in it is ignored. The API's name is `api.{domain}`. */
  readonly domain: string;
  readonly host: string;
  readonly port: number;
}

export interface ServeApiDeps {
  readonly api: ApiRoute;
  readonly logger: Logger;
  readonly clientAddressOf: (req: Sender) => string;
}

/** Returns whether a request came over TLS and names the API. */
export function isForApi(api: ApiRoute, req: IncomingMessage): boolean {
  if (!(req.socket instanceof TLSSocket)) return false;
  const [host = ""] = valuesOf(req.rawHeaders, "host");
  return isApiHost(api, host);
}

export function isApiHost(api: ApiRoute, host: string): boolean {
  return hostNameOf(host) === `api.${hostNameOf(api.domain)}`;
}

/** Reads the path and the framing of a request, or refuses it. */
export function readApiRequest(head: Pick<RequestHead, "url" | "rawHeaders">): ReturnType<typeof messageOf> {
  const hosts = valuesOf(head.rawHeaders, "host");
  if (hosts.length > 1) return { kind: "refused", refusal: badRequest("Invalid host") };
  return messageOf(head, hosts[0]);
}

export async function serveApi(
  deps: ServeApiDeps,
  limits: Limits,
  { req, res }: { req: IncomingMessage; res: ServerResponse },
): Promise<void> {
  const { logger } = deps;
  res.on("error", () => {});
  const message = readApiRequest({ url: req.url ?? "", rawHeaders: req.rawHeaders });
  if (message.kind === "refused") return sendRefusal(req, res, message.refusal);
  const upstream = await connectToApi(deps);
  if (!upstream) return sendRefusal(req, res, apiUnreachable());
  if (res.destroyed) {
    upstream.destroy();
    return;
  }
  const onBroken = (err: Error) => {
    logger.warn({ err }, "the API closed the connection before it responded");
    sendRefusal(req, res, apiUnreachable());
  };
  const onFault = (error: unknown) => failConnection(logger, req.socket, error);
  // The API writes links that clients can follow.
  const extraHeaders = ["X-Forwarded-Proto", "https", "X-Forwarded-For", deps.clientAddressOf(req)];
  const { path, framing } = message;
  forward({ req, res, upstream, path, framing, extraHeaders, maxHeaderBytes: limits.maxHeaderBytes, onBroken, onFault });
}

/** Returns undefined if the API cannot be reached. */
export async function connectToApi({ api, logger }: Pick<ServeApiDeps, "api" | "logger">): Promise<RelaySocket | undefined> {
  try {
    return await connectTo(api);
  } catch (err) {
    logger.warn({ err }, "the edge can't reach the API");
    return undefined;
  }
}

function connectTo({ host, port }: ApiRoute): Promise<RelaySocket> {
  return new Promise((resolve, reject) => {
    const socket = new RelaySocket({ host, port });
    const timer = setTimeout(() => socket.destroy(new Error("the API does not accept connections")), CONNECT_TIMEOUT_MS);
    socket.once("error", reject);
    socket.once("close", () => clearTimeout(timer));
    socket.once("connect", () => {
      clearTimeout(timer);
      resolve(socket);
    });
  });
}
