import { randomUUID } from "node:crypto";
import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import cors from "@fastify/cors";
import type { Logger } from "@skerry/base";
import Fastify, { type FastifyInstance, type FastifyReply } from "fastify";
import { requests } from "../metrics.ts";
import type { VolumeContent } from "../volumes/volume-content.ts";
import { MAX_BODY_BYTES, readJsonBodies } from "./input/body.ts";
import { observeRequests } from "./observe-requests.ts";
import { createOpenApi } from "./openapi.ts";
import type { Operation } from "./operation.ts";
import { OPERATIONS } from "./operations.ts";
import { type EncodedError, encodeError } from "./output/encode-error.ts";
import { auditedRequestOf, type HttpDeps, registerOperation } from "./register-operation.ts";
import { registerUploads } from "./upload-route.ts";
import { registerVolumeContent } from "./volume-content-route.ts";

/** How long the body of a request may take. */
const BODY_TIMEOUT_MS = 75_000;
/** How long any request may take to arrive. Clients give an upload for a build an hour. */
const LONGEST_REQUEST_MS = 2 * 3_600_000;

/** Longest path and headers of a request. */
const MAX_HEADER_BYTES = 64 * 1024;

const ALLOWED_HEADERS =
  "Origin,Content-Length,Content-Type,User-Agent,Authorization,X-API-Key,X-Team-ID,Idempotency-Key,browser,lang,lang_version,machine,os,package_version,processor,publisher,release,sdk_runtime,system";
const EXPOSED_HEADERS =
  "X-Next-Token,X-Total-Running,RateLimit-Limit,RateLimit-Remaining,RateLimit-Reset,Retry-After,Should-Retry,Skerry-Memory-Lost,X-Request-Id";

export interface ServerDeps extends HttpDeps {
  /** Longest pause between two pieces of an upload. */
  readonly uploadIdleMs: number;
  /** Addresses and networks of proxies whose `X-Forwarded-For` names the client. */
  readonly trustedProxies: readonly string[];
  readonly volumeContent: VolumeContent;
}

/** The HTTP server: routing, CORS, bodies and errors. Each operation has its own file. */
export async function createServer(deps: ServerDeps): Promise<FastifyInstance> {
  const app = Fastify({
    logger: false,
    genReqId: () => randomUUID(),
    bodyLimit: MAX_BODY_BYTES,
    trustProxy: deps.trustedProxies.length > 0 ? [...deps.trustedProxies] : false,
    exposeHeadRoutes: false,
    forceCloseConnections: "idle",
    keepAliveTimeout: 620_000,
    // Fastify's own 503 does not have the shape that clients read.
    return503OnClosing: false,
    requestTimeout: LONGEST_REQUEST_MS,
    http: { maxHeaderSize: MAX_HEADER_BYTES, headersTimeout: BODY_TIMEOUT_MS },
    routerOptions: { maxParamLength: 1024 },
    frameworkErrors: (error, _request, reply) => {
      sendError(reply as unknown as FastifyReply, error, { logger: deps.logger });
    },
    clientErrorHandler: answerUnreadable,
  });
  observeRequests(app);
  endConnectionsAtTheirAnswers(app);
  endSlowBodies(app);
  // Events and the log name the request by it.
  app.addHook("onRequest", async (request, reply) => {
    reply.header("X-Request-Id", request.id);
  });
  readJsonBodies(app);
  await app.register(cors, {
    origin: "*",
    methods: "GET,HEAD,POST,PUT,PATCH,DELETE,OPTIONS",
    allowedHeaders: ALLOWED_HEADERS,
    exposedHeaders: EXPOSED_HEADERS,
    strictPreflight: false,
  });
  app.setErrorHandler((error, request, reply) => {
    const operation = (request.routeOptions.config as { operation?: Operation } | undefined)?.operation;
    // Closing the connection while the caller still sends would reset it, and the answer would be lost. So the rest of the body is read and
    // dropped until the request timeout.
    if ((error as { statusCode?: number }).statusCode === 413) {
      reply.removeHeader("connection");
      request.raw.resume();
    }
    const { status, reason } = sendError(reply, error, { logger: deps.logger, operation });
    const audited = auditedRequestOf(request);
    if (audited) deps.audit.trail.end(audited, { status, reason });
  });
  app.setNotFoundHandler((_request, reply) => {
    void reply.code(404).send({ code: 404, message: "no matching operation was found" });
  });
  for (const operation of OPERATIONS) registerOperation(app, deps, operation);
  await registerUploads(app, deps.services.uploads, { idleMs: deps.uploadIdleMs });
  await registerVolumeContent(app, { content: deps.volumeContent, rates: deps.rates, logger: deps.logger, idleMs: deps.uploadIdleMs });
  const document = createOpenApi(OPERATIONS);
  app.get("/openapi.json", () => document);
  return app;
}

/** Closes each connection after its answer while the server shuts down, so that the shutdown does not wait for idle connections. */
function endConnectionsAtTheirAnswers(app: FastifyInstance): void {
  app.addHook("onSend", async (_request, reply) => {
    if (!app.server.listening) reply.header("connection", "close");
  });
  // Connections whose answer had begun before the shutdown.
  app.addHook("onResponse", async () => {
    if (!app.server.listening) app.server.closeIdleConnections();
  });
}

/** Ends requests whose body does not arrive in time. Uploads have limits of their own. */
function endSlowBodies(app: FastifyInstance): void {
  app.addHook("onRequest", async ({ raw, routeOptions }, reply) => {
    const hasBody = raw.headers["transfer-encoding"] !== undefined || Number(raw.headers["content-length"] ?? 0) > 0;
    if (!hasBody || (routeOptions.config as { isUnhurried?: boolean }).isUnhurried) return;
    const late = setTimeout(
      () => answerUnreadable(Object.assign(new Error("late"), { code: "ERR_HTTP_REQUEST_TIMEOUT" }), raw.socket),
      BODY_TIMEOUT_MS,
    );
    for (const event of ["end", "close"]) raw.once(event, () => clearTimeout(late));
    reply.raw.once("close", () => clearTimeout(late));
  });
}

function sendError(reply: FastifyReply, error: unknown, about: { logger: Logger; operation?: Operation | undefined }): EncodedError {
  const encoded = encodeError(error, about.operation);
  const facts = { err: error, operation: about.operation?.id, request_id: reply.request?.id, status: encoded.status };
  // The caller went away and the operation was rolled back, so this is no failure of the platform.
  if (reply.raw.destroyed) about.logger.info(facts, "the caller went away");
  else if (encoded.status === 500) about.logger.error(facts, "an operation failed");
  else if (encoded.isOurs) about.logger.warn(facts, "an operation is not possible now");
  void reply.code(encoded.status).headers(encoded.headers).send(encoded.body);
  return encoded;
}

/** Answers a request that is not valid HTTP, in the same shape as every other error. */
function answerUnreadable(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const status = error.code === "HPE_HEADER_OVERFLOW" ? 431 : error.code === "ERR_HTTP_REQUEST_TIMEOUT" ? 408 : 400;
  const message =
    status === 431 ? "validation error: the path and headers are too long" : "validation error: the request is not valid HTTP";
  const body = JSON.stringify({ code: status, message });
  requests.inc({ operation: "unreadable", code: status });
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}
