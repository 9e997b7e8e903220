// The TLS listener: it completes handshakes and hands the connections to the same HTTP server as plain ones, so that all limits and
// checks behind it are the same.

import { createServer, type Server, type Socket } from "node:net";
import { TLSSocket } from "node:tls";
import type { Logger } from "@skerry/base";
import { carriedBy, reset } from "../connections/reset.ts";
import type { CertificateFiles } from "./certificate-files.ts";

/** Minimum interval between two log lines about failed handshakes, which any client can cause. */
const LOG_INTERVAL_MS = 10_000;

export interface HandshakeLimits {
  readonly handshakeTimeoutMs: number;
  /** Maximum number of handshakes at a time. A further one ends the oldest, which is most likely that of a slow client. */
  readonly maxHandshakes: number;
}

export interface TlsListenerOptions extends HandshakeLimits {
  readonly certificate: CertificateFiles;
  readonly highWaterMark: number;
  /** Returns whether another connection may be accepted. */
  readonly hasRoom: () => boolean;
  /** Told the number of connections, including those in a handshake, whenever it changes. */
  readonly onCount: (open: number) => void;
  /** Receives each connection after its handshake. */
  readonly onConnection: (socket: TLSSocket) => void;
  readonly logger: Logger;
}

export class TlsListener {
  readonly server: Server;
  readonly #options: TlsListenerOptions;
  /** Handshakes in progress, oldest first. */
  readonly #handshakes = new Map<Socket, NodeJS.Timeout>();
  readonly #open = new Set<Socket>();
  #failed = 0;
  #loggedAt = Number.NEGATIVE_INFINITY;

  constructor(options: TlsListenerOptions) {
    this.#options = options;
    this.server = createServer(
      {
        // As for HTTP: the end of a client's requests is not the end of the response.
        allowHalfOpen: true,
        noDelay: true,
        keepAlive: true,
        keepAliveInitialDelay: 60_000,
        highWaterMark: options.highWaterMark,
      },
      (raw) => this.#accept(raw),
    );
    this.server.on("error", (err) => options.logger.error({ err }, "the edge's TLS listener failed"));
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    for (const raw of this.#open) raw.resetAndDestroy();
    await closed;
  }

  #accept(raw: Socket): void {
    raw.on("error", () => {});
    if (!this.#options.hasRoom()) {
      raw.resetAndDestroy();
      return;
    }
    this.#open.add(raw);
    this.#options.onCount(this.#open.size);
    raw.once("close", () => {
      this.#open.delete(raw);
      this.#options.onCount(this.#open.size);
      this.#end(raw);
    });
    this.#limit(raw);
    const { certificate, highWaterMark, onConnection } = this.#options;
    const options = { isServer: true, secureContext: certificate.context, ALPNProtocols: ["h2", "http/1.1"], highWaterMark };
    const socket = new TLSSocket(raw, options);
    carriedBy(socket, raw);
    socket.on("error", (err) => {
      if (!this.#handshakes.has(raw)) return;
      this.#noteFailure(err);
      raw.destroy();
    });
    // After the handshake, Node.js reports a damaged record with this event only, unless its own TLS server made the socket.
    socket.on("_tlsError", () => raw.destroy());
    // A half-open connection does not close by itself.
    socket.once("end", () => {
      if (this.#handshakes.has(raw)) raw.destroy();
    });
    socket.once("secure", () => {
      this.#end(raw);
      onConnection(socket);
    });
  }

  #limit(raw: Socket): void {
    const { handshakeTimeoutMs, maxHandshakes } = this.#options;
    const timer = setTimeout(() => this.#giveUp(raw, "the handshake took too long"), handshakeTimeoutMs);
    this.#handshakes.set(raw, timer);
    if (this.#handshakes.size <= maxHandshakes) return;
    const [oldest] = this.#handshakes.keys();
    if (oldest) this.#giveUp(oldest, "too many handshakes at a time");
  }

  #giveUp(raw: Socket, why: string): void {
    this.#noteFailure(new Error(why));
    this.#end(raw);
    reset(raw);
  }

  #end(raw: Socket): void {
    clearTimeout(this.#handshakes.get(raw));
    this.#handshakes.delete(raw);
  }

  #noteFailure(err: Error): void {
    this.#failed++;
    const now = performance.now();
    if (now - this.#loggedAt < LOG_INTERVAL_MS) return;
    this.#loggedAt = now;
    const { code } = err as NodeJS.ErrnoException;
    this.#options.logger.warn({ failed: this.#failed, last: code ?? err.message }, "TLS handshakes failed");
    this.#failed = 0;
  }
}
