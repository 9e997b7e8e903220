// Clients of an edge over HTTP/2: one that behaves, and one that writes frames itself.

import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect as connectHttp2,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type Settings,
} from "node:http2";
import { connect, type TLSSocket } from "node:tls";
import { hostOf, waitFor } from "./client.ts";
import type { TlsWorld } from "./tls-world.ts";

export interface Http2Answer {
  readonly headers: IncomingHttpHeaders & { ":status"?: number };
  readonly trailers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** A client from the library, which is closed when it goes out of scope. */
export class Http2Client implements Disposable {
  readonly session: ClientHttp2Session;

  private constructor(session: ClientHttp2Session) {
    this.session = session;
    session.on("error", () => {});
  }

  static async open(tls: TlsWorld, settings: Settings = {}): Promise<Http2Client> {
    const options = { ...tls.trusting(), ALPNProtocols: ["h2"] };
    const session = connectHttp2("https://x.skerry.test", {
      createConnection: () => connect(options),
      // The library counts what it has not sent yet.
      maxSessionMemory: 1_000,
      settings: { enablePush: false, ...settings },
    });
    await new Promise((resolve) => session.once("remoteSettings", resolve));
    return new Http2Client(session);
  }

  request(headers: OutgoingHttpHeaders = {}, options: { endStream?: boolean } = {}): ClientHttp2Stream {
    const stream = this.session.request({ ":authority": hostOf(3000), ":scheme": "https", ...headers }, options);
    stream.on("error", () => {});
    return stream;
  }

  async fetch(headers: OutgoingHttpHeaders = {}, body?: string | Buffer): Promise<Http2Answer> {
    const stream = this.request(headers, { endStream: body === undefined });
    if (body !== undefined) stream.end(body);
    return await answerOf(stream);
  }

  [Symbol.dispose](): void {
    this.session.destroy();
  }
}

export async function answerOf(stream: ClientHttp2Stream): Promise<Http2Answer> {
  let headers: IncomingHttpHeaders = {};
  let trailers: IncomingHttpHeaders = {};
  stream.once("response", (got) => {
    headers = got;
  });
  stream.once("trailers", (got) => {
    trailers = got;
  });
  const chunks: Buffer[] = [];
  stream.on("data", (chunk: Buffer) => chunks.push(chunk));
  await new Promise<void>((resolve, reject) => {
    stream.once("error", reject);
    stream.once("close", resolve);
  });
  if (stream.rstCode !== 0) throw new Error(`the stream was reset with ${stream.rstCode}`);
  return { headers, trailers, body: Buffer.concat(chunks) };
}

export const FRAME = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, goaway: 7, window: 8, continuation: 9 } as const;
export const END_STREAM = 1;
export const END_HEADERS = 4;

const PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

/** A connection for frames that no library sends. */
export class FrameClient {
  readonly socket: TLSSocket;
  readonly frames: Frame[] = [];
  #pending = Buffer.alloc(0);

  private constructor(socket: TLSSocket) {
    this.socket = socket;
    socket.on("error", () => {});
    socket.on("data", (chunk: Buffer) => this.#read(chunk));
  }

  static async open(tls: TlsWorld, settings: Buffer = Buffer.alloc(0)): Promise<FrameClient> {
    const socket = connect({ ...tls.trusting(), ALPNProtocols: ["h2"] });
    const client = new FrameClient(socket);
    await new Promise((resolve) => socket.once("secureConnect", resolve));
    socket.write(PREFACE);
    return client.send(FRAME.settings, { payload: settings });
  }

  send(
    type: number,
    { flags = 0, stream = 0, payload = Buffer.alloc(0) }: { flags?: number; stream?: number; payload?: Buffer } = {},
  ): this {
    if (!this.socket.destroyed) this.socket.write(frame(type, { flags, stream, payload }));
    return this;
  }

  /** The code of the GOAWAY that ended the connection, once it has come. */
  get goaway(): number | undefined {
    return this.frames.findLast(({ type }) => type === FRAME.goaway)?.payload.readUInt32BE(4);
  }

  async untilReset(stream: number): Promise<number> {
    const found = () => this.frames.find((one) => one.type === FRAME.reset && one.stream === stream)?.payload.readUInt32BE(0);
    return await waitFor(found, `the reset of stream ${stream}`);
  }

  async untilClosed(): Promise<void> {
    await waitFor(() => (this.socket.destroyed || this.socket.readableEnded ? true : undefined), "the end of the connection");
    this.socket.destroy();
  }

  #read(chunk: Buffer): void {
    this.#pending = Buffer.concat([this.#pending, chunk]);
    while (this.#pending.length >= 9) {
      const length = this.#pending.readUIntBE(0, 3);
      if (this.#pending.length < 9 + length) return;
      this.frames.push({
        type: this.#pending.readUInt8(3),
        flags: this.#pending.readUInt8(4),
        stream: this.#pending.readUInt32BE(5) & 0x7fffffff,
        payload: this.#pending.subarray(9, 9 + length),
      });
      this.#pending = this.#pending.subarray(9 + length);
    }
  }
}

export function frame(
  type: number,
  { flags = 0, stream = 0, payload = Buffer.alloc(0) }: { flags?: number; stream?: number; payload?: Buffer },
): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** Fields as literals without indexing and without Huffman coding (RFC 7541, 6.2.2). */
export function block(fields: readonly (readonly [name: string, value: string])[]): Buffer {
  const text = (value: string) => {
    const bytes = Buffer.from(value, "latin1");
    return Buffer.concat([integer(bytes.length), bytes]);
  };
  return Buffer.concat(fields.flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]));
}

/** A length with a prefix of seven bits (RFC 7541, 5.1). */
function integer(value: number): Buffer {
  if (value < 127) return Buffer.from([value]);
  const out = [127];
  let rest = value - 127;
  for (; rest >= 128; rest >>= 7) out.push((rest & 127) | 128);
  return Buffer.from([...out, rest]);
}

export function get(path = "/", port = 3000): (readonly [string, string])[] {
  return [
    [":method", "GET"],
    [":scheme", "https"],
    [":authority", hostOf(port)],
    [":path", path],
  ];
}
