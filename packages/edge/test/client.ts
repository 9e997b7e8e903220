import { request as httpRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { connect, type Socket } from "node:net";
import { SANDBOX_ID } from "./parts.ts";

export interface Answer {
  readonly status: number;
  readonly statusMessage: string;
  readonly headers: IncomingMessage["headers"];
  readonly rawHeaders: readonly string[];
  readonly trailers: IncomingMessage["trailers"];
  readonly body: Buffer;
}

/** The host name that SDKs use for a sandbox. */
export function hostOf(port: number, sandboxId: string = SANDBOX_ID): string {
  return `${port}-${sandboxId}.skerry.test`;
}

/** Sends one request to the edge on a new connection. */
export async function fetchThrough(
  edgePort: number,
  guestPort: number,
  options: RequestOptions & { body?: string | Buffer } = {},
): Promise<Answer> {
  const { body, headers, ...rest } = options;
  const request = httpRequest({
    host: "127.0.0.1",
    port: edgePort,
    agent: false,
    setHost: false,
    headers: { host: hostOf(guestPort), ...(headers as Record<string, string>) },
    ...rest,
  });
  request.end(body);
  return readAnswer(await responseTo(request));
}

export function responseTo(request: ReturnType<typeof httpRequest>): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.once("response", resolve);
    request.once("error", reject);
  });
}

export async function readAnswer(response: IncomingMessage): Promise<Answer> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return {
    status: response.statusCode ?? 0,
    statusMessage: response.statusMessage ?? "",
    headers: response.headers,
    rawHeaders: response.rawHeaders,
    trailers: response.trailers,
    body: Buffer.concat(chunks),
  };
}

/** A raw connection, for bytes that no HTTP client sends. */
export class RawClient {
  readonly socket: Socket;
  received = "";
  ended = false;
  error: Error | undefined;
  readonly closed: Promise<void>;

  constructor(port: number) {
    this.socket = connect({ host: "127.0.0.1", port, allowHalfOpen: true, noDelay: true });
    this.socket.on("data", (chunk: Buffer) => {
      this.received += chunk.toString("latin1");
    });
    this.socket.on("end", () => {
      this.ended = true;
    });
    this.socket.on("error", (error) => {
      this.error = error;
    });
    this.closed = new Promise((resolve) => this.socket.once("close", () => resolve()));
  }

  send(text: string | Buffer): this {
    this.socket.write(text);
    return this;
  }

  /** Resolves when the text has arrived. */
  async until(text: string, timeoutMs = 30_000): Promise<string> {
    return waitFor(() => (this.received.includes(text) ? this.received : undefined), `"${text}" in ${this.received}`, timeoutMs);
  }

  async untilClosed(timeoutMs = 30_000): Promise<string> {
    await waitFor(() => (this.ended || this.socket.destroyed ? true : undefined), `the end after ${this.received}`, timeoutMs);
    this.socket.destroy();
    await this.closed;
    return this.received;
  }
}

export async function waitFor<T>(probe: () => T | undefined, what: string, timeoutMs = 30_000): Promise<T> {
  const end = Date.now() + timeoutMs;
  for (;;) {
    const value = probe();
    if (value !== undefined) return value;
    if (Date.now() > end) throw new Error(`waited ${timeoutMs} ms for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
