// The HTTP/2 connections of the TLS listener. They have the limits of HTTP/1.1 connections, and further ones, because a connection can carry
// many requests and frames that belong to none.

import { constants, type IncomingHttpHeaders, performServerHandshake, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { TLSSocket } from "node:tls";
import type { Logger } from "@skerry/base";
import { reset } from "../connections/reset.ts";
import type { RawHeaders } from "../forwarding/headers.ts";
import { ControlFrames } from "./control-frames.ts";
import type { StreamRequest } from "./serve-stream.ts";
import { sessionOptions } from "./session-options.ts";

/** Bytes that the client may send ahead on all streams of a connection. What arrives for a stream that is not read counts for that stream alone. */
const CONNECTION_WINDOW_BYTES = 1024 * 1024;

/** Minimum interval between two log lines about connections that were ended. */
const LOG_INTERVAL_MS = 10_000;

export interface SessionsOptions {
  readonly maxHeaderBytes: number;
  readonly idleTimeoutMs: number;
  readonly firstRequestTimeoutMs: number;
  /** Returns whether another stream may be opened. */
  readonly hasRoom: () => boolean;
  readonly onStream: (request: StreamRequest) => void;
  readonly logger: Logger;
}

interface Connection {
  readonly session: ServerHttp2Session;
  readonly client: TLSSocket;
  streams: number;
  timer: NodeJS.Timeout | undefined;
}

export class Http2Sessions {
  readonly #options: SessionsOptions;
  readonly #connections = new Set<Connection>();
  #streams = 0;
  #ended = 0;
  #loggedAt = Number.NEGATIVE_INFINITY;

  constructor(options: SessionsOptions) {
    this.#options = options;
  }

  /** The number of open streams of all connections. */
  get streams(): number {
    return this.#streams;
  }

  accept(client: TLSSocket): void {
    // As a TLS server of Node.js does after the handshake. Otherwise the session waits for an event that only sockets of clients emit.
    Object.assign(client, { secureConnecting: false });
    const session = performServerHandshake(client, sessionOptions(this.#options.maxHeaderBytes));
    const connection: Connection = { session, client, streams: 0, timer: undefined };
    this.#connections.add(connection);
    this.#setTimer(connection, this.#options.firstRequestTimeoutMs, () => reset(client));
    session.setLocalWindowSize(CONNECTION_WINDOW_BYTES);
    session.once("close", () => {
      clearTimeout(connection.timer);
      this.#connections.delete(connection);
      client.destroy();
    });
    // The sockets of the listener may be half-open. Without the client's frames, a session has no use.
    client.once("end", () => client.destroy());
    session.on("error", (err: Error) => this.#note(err));
    session.on("stream", (stream, headers, _flags, rawHeaders: RawHeaders) =>
      this.#open(connection, { stream, headers, rawHeaders, client }),
    );
    const frames = new ControlFrames();
    const onControlFrame = () => {
      if (!frames.take()) session.destroy(new Error("too many control frames"), constants.NGHTTP2_ENHANCE_YOUR_CALM);
    };
    session.on("ping", onControlFrame);
    session.on("remoteSettings", onControlFrame);
  }

  /** Ends the connections without a request. Their clients can connect again. */
  closeIdle(): void {
    for (const { session, streams } of this.#connections) if (streams === 0) session.close();
  }

  #open(
    connection: Connection,
    request: { stream: ServerHttp2Stream; headers: IncomingHttpHeaders; rawHeaders: RawHeaders; client: TLSSocket },
  ): void {
    const { stream } = request;
    stream.on("error", () => {});
    if (!this.#options.hasRoom()) {
      // The client knows that the request was not begun, and may repeat it.
      stream.close(constants.NGHTTP2_REFUSED_STREAM);
      return;
    }
    clearTimeout(connection.timer);
    connection.streams++;
    this.#streams++;
    stream.once("close", () => {
      connection.streams--;
      this.#streams--;
      if (connection.streams > 0 || connection.session.closed) return;
      this.#setTimer(connection, this.#options.idleTimeoutMs, () => connection.session.close());
    });
    this.#options.onStream(request);
  }

  #setTimer(connection: Connection, ms: number, run: () => void): void {
    clearTimeout(connection.timer);
    connection.timer = setTimeout(run, ms).unref();
  }

  #note(err: Error): void {
    this.#ended++;
    const now = performance.now();
    if (now - this.#loggedAt < LOG_INTERVAL_MS) return;
    this.#loggedAt = now;
    this.#options.logger.warn({ err, ended: this.#ended }, "HTTP/2 connections were ended");
    this.#ended = 0;
  }
}
