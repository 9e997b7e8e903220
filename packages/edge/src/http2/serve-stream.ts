import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { TLSSocket } from "node:tls";
import { apiUnreachable, type Refusal } from "../answers/refusal.ts";
import { failConnection } from "../connections/fail-connection.ts";
import type { RawHeaders } from "../forwarding/headers.ts";
import { type ApiRoute, connectToApi, isApiHost, readApiRequest } from "../platform-api/serve-api.ts";
import { admit } from "../routing/admit.ts";
import type { RequestHead } from "../routing/route-request.ts";
import type { Limits, ServeDeps } from "../serve.ts";
import { answerStream } from "./answer-stream.ts";
import { forwardStream } from "./forward-stream.ts";
import { forwardWebSocket } from "./forward-web-socket.ts";
import { type StreamHead, streamHead } from "./stream-head.ts";

export interface StreamDeps extends ServeDeps {
  readonly api?: ApiRoute | undefined;
}

export interface StreamRequest {
  readonly stream: ServerHttp2Stream;
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: RawHeaders;
  /** The connection that the stream is part of. */
  readonly client: TLSSocket;
}

/** Serves one HTTP/2 request with the same checks as one of HTTP/1.1. */
export async function serveStream(deps: StreamDeps, limits: Limits, request: StreamRequest): Promise<void> {
  const { stream, headers, rawHeaders } = request;
  const parsed = streamHead(rawHeaders, { isWhole: stream.endAfterHeaders, maxHeaderBytes: limits.maxHeaderBytes });
  if (parsed.kind === "refused") return answerStream(stream, headers, parsed.refusal);
  const { head } = parsed;
  if (deps.api && isApiHost(deps.api, head.rawHeaders[1] ?? ""))
    return serveApiStream({ ...deps, api: deps.api }, limits, { ...request, head });
  const gone = new AbortController();
  stream.once("close", () => gone.abort());
  const admission = await admit(deps, headFor(deps, request, head), gone.signal);
  if (admission.kind === "refused") return answerStream(stream, headers, admission.refusal);
  const { target, upstream, explainBreak } = admission;
  if (gone.signal.aborted) {
    upstream.destroy();
    return;
  }
  const onFault = (error: unknown) => failConnection(deps.logger, stream, error);
  const onBroken = (err: Error) => {
    deps.logger.info({ err, sandbox_id: target.sandboxId, port: target.port }, "the sandbox closed the connection before it responded");
    explainBreak()
      .then((refusal: Refusal) => answerStream(stream, headers, refusal))
      .catch(onFault);
  };
  const exchange = { ...admission, stream, head, maxHeaderBytes: limits.maxHeaderBytes, onBroken, onFault };
  if (head.webSocketKey === undefined) forwardStream(exchange);
  else forwardWebSocket(exchange);
}

function headFor(deps: StreamDeps, { headers, client }: StreamRequest, { method, url, rawHeaders }: StreamHead): RequestHead {
  const clientAddress = () => deps.clientAddressOf({ socket: client, headers });
  return { method, url, rawHeaders, clientAddress, isSecure: () => true };
}

async function serveApiStream(
  deps: StreamDeps & { readonly api: ApiRoute },
  limits: Limits,
  { stream, headers, head, client }: StreamRequest & { readonly head: StreamHead },
): Promise<void> {
  const { logger } = deps;
  const message = readApiRequest({ url: head.url, rawHeaders: head.rawHeaders });
  if (message.kind === "refused") return answerStream(stream, headers, message.refusal);
  const upstream = await connectToApi(deps);
  if (!upstream) return answerStream(stream, headers, apiUnreachable());
  if (stream.destroyed) {
    upstream.destroy();
    return;
  }
  const onBroken = (err: Error) => {
    logger.warn({ err }, "the API closed the connection before it responded");
    answerStream(stream, headers, apiUnreachable());
  };
  const clientAddress = deps.clientAddressOf({ socket: client, headers });
  const extraHeaders = ["X-Forwarded-Proto", "https", "X-Forwarded-For", clientAddress];
  const { path, framing } = message;
  const onFault = (error: unknown) => failConnection(logger, stream, error);
  forwardStream({ stream, head, upstream, path, framing, extraHeaders, maxHeaderBytes: limits.maxHeaderBytes, onBroken, onFault });
}
