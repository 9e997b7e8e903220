// Reads the server name of the first message of a TLS client (RFC 8446, RFC 6066), however it is split over records and packets.

/** More than any client sends, also with post-quantum keys. */
export const MAX_HELLO_BYTES = 32 * 1024;

const HANDSHAKE_RECORD = 22;
const RECORD_HEADER_BYTES = 5;
const MAX_RECORD_BYTES = 16 * 1024;
const CLIENT_HELLO = 1;
const SERVER_NAME = 0;
/** Encrypted client hello (RFC 9849): the name that counts for the server is hidden. Also sent as a decoy that looks the same. */
const ENCRYPTED_CLIENT_HELLO = 0xfe0d;
const HOST_NAME = 0;

export type ClientHello =
  | { readonly kind: "incomplete" }
  /** `name` is undefined when the client named no server. */
  | { readonly kind: "hello"; readonly name: string | undefined; readonly isEncrypted: boolean }
  | { readonly kind: "no_tls" };

const NO_TLS: ClientHello = { kind: "no_tls" };

/** `bytes` is everything that the client has sent so far. */
export function readClientHello(bytes: Buffer): ClientHello {
  const message = handshakeBytes(bytes);
  if (message === undefined) return NO_TLS;
  if (message.length > 0 && message[0] !== CLIENT_HELLO) return NO_TLS;
  if (message.length < 4) return { kind: "incomplete" };
  const length = message.readUIntBE(1, 3);
  if (length > MAX_HELLO_BYTES) return NO_TLS;
  if (message.length < 4 + length) return { kind: "incomplete" };
  try {
    return parseHello(new Reader(message.subarray(4, 4 + length)));
  } catch (error) {
    if (error instanceof RangeError) return NO_TLS;
    throw error;
  }
}

/** The content of all records so far. Undefined when a record is not of a handshake. */
function handshakeBytes(bytes: Buffer): Buffer | undefined {
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    if (bytes[at] !== HANDSHAKE_RECORD || (at + 1 < bytes.length && bytes[at + 1] !== 3)) return undefined;
    if (bytes.length - at < RECORD_HEADER_BYTES) break;
    const length = bytes.readUInt16BE(at + 3);
    if (length === 0 || length > MAX_RECORD_BYTES) return undefined;
    const start = at + RECORD_HEADER_BYTES;
    parts.push(bytes.subarray(start, start + length));
    at = start + length;
  }
  return Buffer.concat(parts);
}

function parseHello(hello: Reader): ClientHello {
  hello.skip(2 + 32); // version, random
  hello.vector(1); // session id
  hello.vector(2); // cipher suites
  hello.vector(1); // compression methods
  if (hello.isAtEnd) return { kind: "hello", name: undefined, isEncrypted: false };
  const extensions = hello.vector(2);
  const seen = new Set<number>();
  let name: string | undefined;
  while (!extensions.isAtEnd) {
    const type = extensions.number(2);
    const content = extensions.vector(2);
    // Two programs may read a repeated extension differently.
    if (seen.has(type)) return NO_TLS;
    seen.add(type);
    if (type === SERVER_NAME) name = serverName(content);
  }
  return hello.isAtEnd ? { kind: "hello", name, isEncrypted: seen.has(ENCRYPTED_CLIENT_HELLO) } : NO_TLS;
}

function serverName(content: Reader): string {
  const list = content.vector(2);
  const type = list.number(1);
  const name = list.vector(2);
  // One name of the only type that exists. Throws like any other broken hello.
  if (type !== HOST_NAME || !list.isAtEnd || !content.isAtEnd) throw new RangeError("more than one server name");
  return name.rest().toString("latin1");
}

/** Throws RangeError when there are fewer bytes than asked for. */
class Reader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  skip(count: number): void {
    if (count > this.#bytes.length - this.#at) throw new RangeError("the message ends too early");
    this.#at += count;
  }

  number(size: number): number {
    this.skip(size);
    return this.#bytes.readUIntBE(this.#at - size, size);
  }

  /** Bytes that follow their own length, which has `size` bytes. */
  vector(size: number): Reader {
    const length = this.number(size);
    this.skip(length);
    return new Reader(this.#bytes.subarray(this.#at - length, this.#at));
  }

  rest(): Buffer {
    return this.#bytes.subarray(this.#at);
  }
}
