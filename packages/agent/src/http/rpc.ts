// Connect RPC inside the agent's own pipeline: the checks of every route, the Connect protocol only, uncompressed responses.

import { Code, ConnectError, type ContextValues, createConnectRouter, createContextValues } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { compressionGzip, universalRequestFromNodeRequest, universalResponseToNodeResponse } from "@connectrpc/connect-node";
import { Filesystem } from "@skerry/wire/filesystem";
import { Process } from "@skerry/wire/process";
import { credentialProblem } from "../basic-user.ts";
import { filesystemService } from "../filesystem/service.ts";
import type { Reaper } from "../native/reaper.ts";
import type { ProcessContext } from "../process/context.ts";
import { ProcessTable } from "../process/running/table.ts";
import { processService } from "../process/service.ts";
import { stateKey } from "../request-user.ts";
import type { AgentState } from "../state.ts";
import type { Exchange, Route } from "./exchange.ts";
import type { RouteTable } from "./router.ts";
import { type StreamedBody, streamedBodyKey } from "./streamed-body.ts";

/** Longest delay of a Node.js timer. */
const MAX_TIMER_MS = 0x7fffffff;

/** Limit on one message, which is held in memory, also while it is decompressed. A sandbox has not much more memory to spare. */
const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;

const UNARY_TYPES = ["application/json", "application/json; charset=utf-8", "application/proto"];
const STREAM_TYPES = ["application/connect+json", "application/connect+json; charset=utf-8", "application/connect+proto"];
const UNARY_PATTERN = /^application\/(?:json(?:; ?charset=utf-?8)?|proto)$/i;
const STREAM_PATTERN = /^application\/connect\+(?:json(?:; ?charset=utf-?8)?|proto)$/i;

export interface RpcOptions {
  readonly state: AgentState;
  readonly tini: string;
  /** The only reaper of this process, because it collects the exit status of every child. */
  readonly reaper: Reaper;
}

export function rpcRoutes(options: RpcOptions): RouteTable {
  const { state, tini, reaper } = options;
  const process: ProcessContext = { state, tini, table: new ProcessTable(reaper) };
  const router = createConnectRouter({
    grpc: false,
    grpcWeb: false,
    acceptCompression: [gzip],
    readMaxBytes: MAX_MESSAGE_BYTES,
    // Runs before the body is read. Unknown users fail streaming calls here, with an error in the stream. The pipeline checks unary calls.
    requestGate: (context) => {
      const isUnary = context.method.methodKind === "unary";
      const problem = isUnary ? undefined : credentialProblem(context.requestHeader.get("Authorization") ?? undefined);
      if (problem !== undefined) throw new ConnectError(problem, Code.Unauthenticated);
      // The library accepts any version unless every request must name one.
      const version = context.requestHeader.get("Connect-Protocol-Version");
      if (version !== null && version !== "1")
        throw new ConnectError(`connect-protocol-version must be "1": got "${version}"`, Code.InvalidArgument);
    },
  });
  router.service(Process, processService(process));
  router.service(Filesystem, filesystemService({ state }));
  return new Map(
    router.handlers.map((handler): [string, { POST: Route }] => [
      handler.requestPath,
      { POST: (exchange) => serve(handler, exchange, createContextValues().set(stateKey, state)) },
    ]),
  );
}

type Handler = ReturnType<typeof createConnectRouter>["handlers"][number];
type Answer = Awaited<ReturnType<Handler>>;

/** Reports a message that cannot be decompressed as the client's mistake. The library reports an internal error. */
const gzip: Compression = {
  ...compressionGzip,
  decompress: (bytes, readMaxBytes) =>
    compressionGzip.decompress(bytes, readMaxBytes).catch((cause: unknown) => {
      const error = ConnectError.from(cause);
      throw error.code === Code.Internal ? new ConnectError("the message is not gzip", Code.InvalidArgument) : error;
    }),
};

async function serve(handler: Handler, { req, res }: Exchange, values: ContextValues): Promise<void> {
  const isUnary = handler.method.methodKind === "unary";
  if (!(isUnary ? UNARY_PATTERN : STREAM_PATTERN).test(req.headers["content-type"] ?? "")) {
    res.writeHead(415, { "Accept-Post": (isUnary ? UNARY_TYPES : STREAM_TYPES).join(", "), "Content-Length": "0" }).end();
    return;
  }
  // Announces what the agent accepts. Its own responses are never compressed, which every client can read.
  res.setHeader(isUnary ? "Accept-Encoding" : "Connect-Accept-Encoding", "gzip");
  delete req.headers["accept-encoding"];
  delete req.headers["connect-accept-encoding"];
  const timeout = req.headers["connect-timeout-ms"];
  if (typeof timeout === "string" && /^\d{10}$/.test(timeout) && Number(timeout) > MAX_TIMER_MS) delete req.headers["connect-timeout-ms"];
  // The library builds a URL from the host, which no handler reads. Not every host name that leads here is valid in a URL.
  req.headers.host = "sandbox";
  try {
    const answer = await handler(universalRequestFromNodeRequest(req, res, undefined, values));
    const body = answer.status === 200 ? values.get(streamedBodyKey) : undefined;
    await universalResponseToNodeResponse(body ? withBody(answer, body) : answer, res);
  } catch (error) {
    if (ConnectError.from(error).code !== Code.Aborted) throw error;
    // The client disconnected in the middle of its request.
    res.destroy();
  }
}

function withBody(answer: Answer, { pieces, bytes }: StreamedBody): Answer {
  const header = new Headers(answer.header);
  if (bytes === undefined) header.delete("Content-Length");
  else header.set("Content-Length", String(bytes));
  return { ...answer, header, body: inPieces(pieces) };
}

async function* inPieces(pieces: StreamedBody["pieces"]): AsyncGenerator<Uint8Array> {
  yield* pieces;
}
