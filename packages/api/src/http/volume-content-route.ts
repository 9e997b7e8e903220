// The content API of volumes. It is an API of its own: its credential is the token of a volume, the codes of its errors are text, and files are
// streamed. Clients find it at the address of the platform API.

import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { type Logger, PlatformError } from "@skerry/base";
import { isUuid } from "@skerry/wire";
import type { VolumeEntry } from "@skerry/wire/node";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { type Static, type TObject, Type } from "typebox";
import { invalid, publicError, validationError } from "../errors.ts";
import type { Content, EntryMetadata, FilePart, VolumeContent } from "../volumes/volume-content.ts";
import { createCheck, readQuery } from "./input/check.ts";
import { encodeError } from "./output/encode-error.ts";
import type { RequestRates } from "./request-rates.ts";
import { UNHURRIED } from "./upload-route.ts";

const PREFIX = "/volumecontent/:volumeID";
const MAX_UINT32 = 2 ** 32 - 1;
const MAX_METADATA_BYTES = 16 * 1024;
const MAX_DEPTH = 1_000;

const uint32 = Type.Optional(Type.Integer({ minimum: 0, maximum: MAX_UINT32 }));
const owned = { uid: uint32, gid: uint32, mode: uint32 };
const PathQuery = Type.Object({ path: Type.String({ minLength: 1 }) });
const ListQuery = Type.Object({ ...PathQuery.properties, depth: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_DEPTH })) });
const MakeQuery = Type.Object({
  ...PathQuery.properties,
  ...owned,
  force: Type.Optional(Type.Union([Type.Literal("true"), Type.Literal("false")])),
});
const MetadataBody = Type.Object(owned);
const checkMetadata = createCheck(MetadataBody, "body");

export interface VolumeContentRoutes {
  readonly content: VolumeContent;
  readonly rates: RequestRates;
  readonly logger: Logger;
  /** Longest pause between two pieces of an upload. */
  readonly idleMs: number;
}

interface Asked<Q extends TObject> {
  readonly content: Content;
  readonly query: Static<Q>;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  /** Aborted when the caller disconnects before the answer is sent. */
  readonly signal: AbortSignal;
}

export async function registerVolumeContent(app: FastifyInstance, deps: VolumeContentRoutes): Promise<void> {
  await app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser("application/json", { parseAs: "string", bodyLimit: MAX_METADATA_BYTES }, (_request, body, done) => {
      try {
        done(null, JSON.parse(String(body)));
      } catch {
        done(validationError("the body is not JSON"));
      }
    });
    // The handler reads the body.
    scope.addContentTypeParser("*", (_request, _body, done) => done(null));
    scope.setErrorHandler((error, request, reply) => sendError(deps, reply, { error, request }));
    const route = <Q extends TObject>(
      method: "GET" | "PUT" | "POST" | "PATCH" | "DELETE",
      what: "path" | "dir" | "file",
      { query: schema, handle }: { readonly query: Q; readonly handle: (asked: Asked<Q>) => unknown },
    ) => {
      const check = createCheck(schema, "query");
      scope.route({
        method,
        url: `${PREFIX}/${what}`,
        // The name in metrics.
        config: { ...(what === "file" ? UNHURRIED : {}), operation: { id: "volumecontent" } } as object,
        // Before the body, which may be long.
        onRequest: async (request, reply) => {
          const signal = callerGone(reply);
          const content = await admit(deps, request, reply);
          const query = readQuery(schema, request.query as Record<string, unknown>);
          check(query);
          Object.assign(request, { asked: { content, query, request, reply, signal } });
        },
        handler: async (request) => await handle((request as unknown as { asked: Asked<Q> }).asked),
      });
    };
    route("GET", "path", { query: PathQuery, handle: async ({ content, query }) => encode(await content.stat(query.path)) });
    route("PATCH", "path", { query: PathQuery, handle: setMetadata });
    route("DELETE", "path", {
      query: PathQuery,
      handle: async ({ content, query, reply }) => {
        await content.remove(query.path);
        return reply.code(204).send();
      },
    });
    route("GET", "dir", { query: ListQuery, handle: list });
    route("POST", "dir", {
      query: MakeQuery,
      handle: async ({ content, query, reply }) => reply.code(201).send(encode(await content.makeDirectory(query.path, makeOf(query)))),
    });
    route("GET", "file", { query: PathQuery, handle: sendFile });
    route("PUT", "file", { query: MakeQuery, handle: (asked) => receiveFile(asked, deps.idleMs) });
  });
}

async function admit({ content, rates }: VolumeContentRoutes, request: FastifyRequest, reply: FastifyReply): Promise<Content> {
  const { volumeID } = request.params as { volumeID: string };
  const { method } = request;
  const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1];
  if (!isUuid(volumeID)) throw invalid("Invalid volume ID");
  const admitted = await content.admit(token, volumeID.toLowerCase(), { writes: method !== "GET", deletes: method === "DELETE" });
  const caller = { kind: "team", team: admitted.team, actor: "volume", scopes: [] } as const;
  const rate = await rates.take(caller, `volumecontent ${method} ${request.routeOptions.url}`);
  if (rate) void reply.headers(rate.headers);
  if (rate?.isAllowed === false) throw publicError("rate_limited", "Rate limit exceeded");
  return admitted;
}

async function setMetadata({ content, query, request }: Asked<typeof PathQuery>) {
  checkMetadata(request.body);
  return encode(await content.setMetadata(query.path, metadataOf(request.body as EntryMetadata)));
}

/** A directory may have any number of entries, so the answer is written while they come. */
async function list({ content, query, reply, signal }: Asked<typeof ListQuery>) {
  const batches = await content.list(query.path, query.depth ?? 1, signal);
  async function* json() {
    let separator = "[";
    for await (const entries of batches) {
      if (entries.length === 0) continue;
      yield separator + entries.map((entry) => JSON.stringify(encode(entry))).join(",");
      separator = ",";
    }
    yield separator === "[" ? "[]" : "]";
  }
  return reply.type("application/json; charset=utf-8").send(Readable.from(json(), { objectMode: false }));
}

async function sendFile({ content, query, request, reply, signal }: Asked<typeof PathQuery>) {
  const { range } = request.headers;
  const { size, modifiedMs, part, bytes } = await content.read(query.path, (whole) => partOf(range, whole), signal);
  void reply.headers({
    "accept-ranges": "bytes",
    "content-type": "application/octet-stream",
    // What is in a volume is made by anybody: no browser may run it.
    "x-content-type-options": "nosniff",
    "last-modified": new Date(modifiedMs).toUTCString(),
  });
  if (!part) {
    throw Object.assign(publicError("range_not_satisfiable", `The file has ${size} bytes`), {
      headers: { "content-range": `bytes */${size}` },
    });
  }
  const isWhole = part.start === 0 && part.end === size;
  if (!isWhole) void reply.code(206).header("content-range", `bytes ${part.start}-${part.end - 1}/${size}`);
  return reply.header("content-length", part.end - part.start).send(Readable.from(bytes, { objectMode: false }));
}

async function receiveFile({ content, query, request, reply, signal }: Asked<typeof MakeQuery>, idleMs: number) {
  if (request.headers["content-encoding"] !== undefined) throw invalid("Content-Encoding is not supported: send the bytes of the file");
  const bytes = piecesOf(request.raw, idleMs);
  return reply.code(201).send(encode(await content.write(query.path, makeOf(query), { bytes, signal })));
}

/** The body as it arrives. Throws when it ends early, or pauses for too long. */
async function* piecesOf(request: IncomingMessage, idleMs: number): AsyncGenerator<Uint8Array> {
  request.setTimeout(idleMs, () => request.destroy(new Error("the upload stopped")));
  try {
    // An early end must not close the connection: the answer is still to be sent.
    for await (const piece of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>) yield piece;
  } finally {
    request.setTimeout(0);
  }
  if (!request.complete) throw validationError("the body ended early");
}

/** The part that a `Range` header asks for: the whole file without one, and for several parts. Undefined: the file has no such part. */
export function partOf(header: string | undefined, size: number): FilePart | undefined {
  const [, first = "", last = ""] = /^bytes=(\d*)-(\d*)$/.exec(header?.replaceAll(" ", "") ?? "") ?? [];
  const whole = { start: 0, end: size };
  if (first === "" && last === "") return whole;
  if (first === "") return Number(last) === 0 ? undefined : { start: Math.max(0, size - Number(last)), end: size };
  const start = Number(first);
  if (last !== "" && Number(last) < start) return whole;
  return start < size ? { start, end: last === "" ? size : Math.min(Number(last) + 1, size) } : undefined;
}

function makeOf(query: Static<typeof MakeQuery>) {
  return { metadata: metadataOf(query), force: query.force === "true" };
}

function metadataOf({ uid, gid, mode }: { uid?: number | undefined; gid?: number | undefined; mode?: number | undefined }): EntryMetadata {
  return { ...(uid === undefined ? {} : { uid }), ...(gid === undefined ? {} : { gid }), ...(mode === undefined ? {} : { mode }) };
}

function encode(entry: VolumeEntry) {
  const { name, type, path, size, mode, uid, gid, atimeMs, mtimeMs, ctimeMs, target } = entry;
  const time = (ms: number) => new Date(ms).toISOString();
  const times = { atime: time(atimeMs), mtime: time(mtimeMs), ctime: time(ctimeMs) };
  return { name, type, path, size: Number(size), mode, uid, gid, ...times, ...(target === undefined ? {} : { target }) };
}

function callerGone(reply: FastifyReply): AbortSignal {
  const controller = new AbortController();
  reply.raw.once("close", () => {
    if (!reply.raw.writableFinished) controller.abort();
  });
  return controller.signal;
}

/** Errors of the content API have a text as their code: the code of what happened, or else that of the catalog. */
function sendError(
  { logger }: VolumeContentRoutes,
  reply: FastifyReply,
  { error, request }: { readonly error: unknown; readonly request: FastifyRequest },
): void {
  const encoded = encodeError(error, { repeatable: request.method === "GET" });
  const facts = { err: error, operation: "volumecontent", method: request.method, request_id: request.id, status: encoded.status };
  if (reply.raw.destroyed) logger.info(facts, "the caller went away");
  else if (encoded.status === 500) logger.error(facts, "an operation failed");
  else if (encoded.isOurs) logger.warn(facts, "an operation is not possible now");
  const code = encoded.body.error_code ?? (error instanceof PlatformError ? error.code : "invalid_argument");
  const headers = (error as { headers?: Record<string, string> }).headers ?? {};
  void reply
    .code(encoded.status)
    .headers({ ...encoded.headers, ...headers })
    .type("application/json; charset=utf-8")
    .removeHeader("content-length")
    .send({ code, message: encoded.body.message });
}
