// Sockets to the kernel's netlink families, which Node.js does not offer. Reading never waits: a caller looks from time to time. Only files whose
// names end in `.privileged.ts` import this module.

import koffi from "koffi";
import { errnoName, PlatformError } from "./error.ts";

const libc = koffi.load("libc.so.6");
const socketFn = libc.func("int socket(int domain, int type, int protocol)");
const bindFn = libc.func("int bind(int fd, const uint8_t *address, uint32_t length)");
const setsockoptFn = libc.func("int setsockopt(int fd, int level, int name, const uint8_t *value, uint32_t length)");
koffi.struct("sock_filter", { code: "uint16", jt: "uint8", jf: "uint8", k: "uint32" });
koffi.struct("sock_fprog", { len: "uint16", filter: "sock_filter *" });
const setFilterFn = libc.func("int setsockopt(int fd, int level, int name, const sock_fprog *value, uint32_t length)");
const sendFn = libc.func("long send(int fd, const uint8_t *message, size_t length, int flags)");
const recvFn = libc.func("long recv(int fd, _Out_ uint8_t *buffer, size_t length, int flags)");
const closeFn = libc.func("int close(int fd)");

// From linux/socket.h, linux/netlink.h and asm-generic/socket.h. The numbers are the same on x86-64 and arm64.
const AF_NETLINK = 16;
const SOCK_RAW_NONBLOCK_CLOEXEC = 3 | 0o4000 | 0o2000000;
const NETLINK_NETFILTER = 12;
const SOL_SOCKET = 1;
const SO_RCVBUFFORCE = 33;
const SO_ATTACH_FILTER = 26;
const FILTER_PROGRAM_BYTES = 16;
const HEADER_BYTES = 16;
const NLMSG_ERROR = 2;
const NLMSG_DONE = 3;
export const NLM_F_REQUEST = 1;
export const NLM_F_ACK = 4;
export const NLM_F_DUMP = 0x300;
const TYPE_MASK = 0x3fff;
const BUFFER_BYTES = 64 * 1024;

const { EAGAIN, ENOBUFS } = koffi.os.errno as { EAGAIN: number; ENOBUFS: number };

export interface NetlinkMessage {
  readonly type: number;
  readonly body: Buffer;
}

/** An instruction of the kernel's packet filter (classic BPF): linux/filter.h. */
export interface FilterInstruction {
  readonly code: number;
  /** Instructions that are skipped when a comparison holds, and when it does not. */
  readonly jt: number;
  readonly jf: number;
  readonly k: number;
}

export interface NetlinkOptions {
  /** Bits of the multicast groups that it joins. */
  readonly groups?: number;
  readonly receiveBytes: number;
  /** Decides in the kernel which messages arrive. Default: all. */
  readonly filter?: readonly FilterInstruction[];
}

export class NetlinkSocket {
  readonly #fd: number;
  readonly #buffer = new Uint8Array(BUFFER_BYTES);

  /** A socket of netfilter. */
  constructor({ groups = 0, receiveBytes, filter }: NetlinkOptions) {
    this.#fd = socketFn(AF_NETLINK, SOCK_RAW_NONBLOCK_CLOEXEC, NETLINK_NETFILTER);
    if (this.#fd < 0) fail("socket");
    const address = Buffer.alloc(12);
    address.writeUInt16LE(AF_NETLINK, 0);
    address.writeUInt32LE(groups, 8);
    const size = Buffer.alloc(4);
    size.writeUInt32LE(receiveBytes);
    setsockoptFn(this.#fd, SOL_SOCKET, SO_RCVBUFFORCE, size, size.length);
    const program = filter && { len: filter.length, filter };
    if (program && setFilterFn(this.#fd, SOL_SOCKET, SO_ATTACH_FILTER, program, FILTER_PROGRAM_BYTES) !== 0) {
      this.close();
      fail("the filter");
    }
    if (bindFn(this.#fd, address, address.length) !== 0) {
      this.close();
      fail("bind");
    }
  }

  send({ type, flags, body }: { readonly type: number; readonly flags: number; readonly body: Buffer }): void {
    const head = Buffer.alloc(HEADER_BYTES);
    head.writeUInt32LE(HEADER_BYTES + body.length, 0);
    head.writeUInt16LE(type, 4);
    head.writeUInt16LE(flags | NLM_F_REQUEST, 6);
    const message = Buffer.concat([head, body]);
    if (sendFn(this.#fd, message, message.length, 0) !== message.length) fail("send");
  }

  /**
   * What has arrived; undefined when nothing has. The kernel drops what does not fit into the socket's buffer: the answer is then "lost". Throws
   * when the kernel refused a message.
   */
  receive(): readonly NetlinkMessage[] | "lost" | undefined {
    const length = recvFn(this.#fd, this.#buffer, this.#buffer.length, 0) as number;
    if (length < 0) {
      const errno = koffi.errno();
      if (errno === EAGAIN) return undefined;
      if (errno === ENOBUFS) return "lost";
      fail("recv", errno);
    }
    return parseMessages(Buffer.from(this.#buffer.subarray(0, length)));
  }

  /** Sends a request, and returns the messages of the answer. The kernel answers netfilter's requests at once. Preconditions: no groups. */
  ask(request: { readonly type: number; readonly flags: number; readonly body: Buffer }): readonly NetlinkMessage[] {
    this.send(request);
    const all: NetlinkMessage[] = [];
    for (;;) {
      const messages = this.receive();
      if (messages === undefined) return all;
      if (messages === "lost") throw new PlatformError("system_call_failed", "the answer of the kernel was too long");
      for (const message of messages) {
        if (message.type === NLMSG_DONE) return all;
        all.push(message);
      }
    }
  }

  close(): void {
    closeFn(this.#fd);
  }
}

function parseMessages(bytes: Buffer): NetlinkMessage[] {
  const messages: NetlinkMessage[] = [];
  for (let at = 0; at + HEADER_BYTES <= bytes.length; ) {
    const length = bytes.readUInt32LE(at);
    const type = bytes.readUInt16LE(at + 4);
    if (length < HEADER_BYTES || at + length > bytes.length) break;
    const body = bytes.subarray(at + HEADER_BYTES, at + length);
    if (type === NLMSG_ERROR) {
      const errno = -body.readInt32LE(0);
      if (errno !== 0) fail("the request", errno);
    } else messages.push({ type, body });
    at += align(length);
  }
  return messages;
}

/** The attributes of a message, by type. Of those that come several times, the last. */
export function attributesOf(bytes: Buffer): Map<number, Buffer> {
  return new Map(listAttributes(bytes).map(({ type, value }) => [type, value]));
}

export function listAttributes(bytes: Buffer): { readonly type: number; readonly value: Buffer }[] {
  const attributes: { type: number; value: Buffer }[] = [];
  for (let at = 0; at + 4 <= bytes.length; ) {
    const length = bytes.readUInt16LE(at);
    if (length < 4 || at + length > bytes.length) break;
    attributes.push({ type: bytes.readUInt16LE(at + 2) & TYPE_MASK, value: bytes.subarray(at + 4, at + length) });
    at += align(length);
  }
  return attributes;
}

export function attribute(type: number, value: Buffer): Buffer {
  const bytes = Buffer.alloc(align(4 + value.length));
  bytes.writeUInt16LE(4 + value.length, 0);
  bytes.writeUInt16LE(type, 2);
  value.copy(bytes, 4);
  return bytes;
}

function align(length: number): number {
  return (length + 3) & ~3;
}

function fail(call: string, errno = koffi.errno()): never {
  throw new PlatformError("system_call_failed", `netlink: ${call} failed with ${errnoName(errno)}`, {
    cause: Object.assign(new Error(errnoName(errno)), { code: errnoName(errno) }),
  });
}
