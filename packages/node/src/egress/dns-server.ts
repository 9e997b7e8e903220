// The name server of sandboxes with a policy for names. It answers questions for allowed names only, and asks nobody about others: a question
// that is passed on carries data out of the sandbox.

import { createSocket, type RemoteInfo, type Socket as UdpSocket } from "node:dgram";
import { createServer, type Server, type Socket } from "node:net";
import {
  type Answer,
  type DecodedPacket,
  decode,
  encode,
  type OptAnswer,
  type Question,
  RECURSION_AVAILABLE,
  RECURSION_DESIRED,
  TRUNCATED_RESPONSE,
} from "dns-packet";
import { answerTo } from "./dns-answer.ts";
import type { NameLookup } from "./name-lookup.ts";
import { hostName } from "./names.ts";
import { judgeName } from "./policy.ts";
import type { SandboxEgress } from "./sandbox-egress.ts";

const PORT = 53;
/** Without EDNS, and the most that passes every network. */
const [MIN_UDP_BYTES, MAX_UDP_BYTES] = [512, 1_232];
/** The kind of a message, in its flags. Questions have 0. */
const [OPCODE_SHIFT, OPCODE_MASK] = [11, 15];
/** Of one sandbox. */
const MAX_OPEN_QUESTIONS = 64;
const TCP_IDLE_MS = 30_000;
/** Short, because a restart forgets what stands for what. */
const STAND_IN_TTL_SECONDS = 1;

const RCODE = { ok: 0, malformed: 1, failed: 2, noSuchName: 3, notImplemented: 4, refused: 5 } as const;

export interface DnsServerOptions {
  readonly lookup: NameLookup;
  readonly sandboxAt: (address: string) => SandboxEgress | undefined;
}

export class DnsServer {
  readonly #options: DnsServerOptions;
  readonly #open = new Map<SandboxEgress, number>();
  readonly #tcp: Server;
  #udp: UdpSocket | undefined;

  constructor(options: DnsServerOptions) {
    this.#options = options;
    this.#tcp = createServer({ allowHalfOpen: true }, (socket) => this.#accept(socket));
  }

  /** Throws when the port is taken, and then listens on nothing. */
  async listen(port: number): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#tcp.once("error", reject).listen({ host: "0.0.0.0", port }, () => resolve());
    });
    const udp = createSocket("udp4");
    try {
      await new Promise<void>((resolve, reject) => void udp.once("error", reject).bind(port, "0.0.0.0", () => resolve()));
    } catch (error) {
      udp.close();
      await new Promise((resolve) => this.#tcp.close(resolve));
      throw error;
    }
    // Such as an answer to a sandbox that has gone.
    udp.on("error", () => {});
    udp.on("message", (message, from) => void this.#onDatagram(udp, message, from));
    this.#udp = udp;
  }

  async #onDatagram(udp: UdpSocket, message: Buffer, from: RemoteInfo): Promise<void> {
    const sandbox = this.#options.sandboxAt(from.address);
    const answer = sandbox && (await this.#answer(sandbox, message, { isUdp: true }));
    if (answer && this.#udp) udp.send(answer, from.port, from.address, () => {});
  }

  #accept(socket: Socket): void {
    socket.on("error", () => {});
    const sandbox = this.#options.sandboxAt(socket.remoteAddress ?? "");
    const forget = sandbox?.admit({ cut: () => socket.resetAndDestroy() });
    if (!sandbox || !forget) return void socket.resetAndDestroy();
    socket.once("close", forget).setTimeout(TCP_IDLE_MS, () => socket.destroy());
    void this.#converse(sandbox, socket).catch(() => socket.destroy());
  }

  /** Answers one question after the other. */
  async #converse(sandbox: SandboxEgress, socket: Socket): Promise<void> {
    let bytes: Buffer = Buffer.alloc(0);
    for await (const chunk of socket as AsyncIterable<Buffer>) {
      bytes = Buffer.concat([bytes, chunk]);
      while (bytes.length >= 2 && bytes.length >= 2 + bytes.readUInt16BE(0)) {
        const end = 2 + bytes.readUInt16BE(0);
        const answer = await this.#answer(sandbox, bytes.subarray(2, end), { isUdp: false });
        bytes = bytes.subarray(end);
        if (!answer) return void socket.destroy();
        const length = Buffer.alloc(2);
        length.writeUInt16BE(answer.length);
        socket.write(Buffer.concat([length, answer]));
      }
    }
    socket.end();
  }

  /** Undefined: no answer at all. */
  async #answer(sandbox: SandboxEgress, message: Buffer, { isUdp }: { isUdp: boolean }): Promise<Buffer | undefined> {
    const open = this.#open.get(sandbox) ?? 0;
    if (open >= MAX_OPEN_QUESTIONS) return undefined;
    this.#open.set(sandbox, open + 1);
    try {
      const query = read(message);
      if (!query) {
        sandbox.refused({ protocol: "dns", name: "", address: "", port: PORT }, "bad_request");
        return undefined;
      }
      const answer = reply(query, await this.#resolve(sandbox, query));
      return isUdp && answer.length > mostBytes(query) ? reply(query, { rcode: RCODE.ok, isTruncated: true }) : answer;
    } finally {
      const left = (this.#open.get(sandbox) ?? 1) - 1;
      if (left === 0) this.#open.delete(sandbox);
      else this.#open.set(sandbox, left);
    }
  }

  async #resolve(sandbox: SandboxEgress, { questions = [], flags = 0 }: DecodedPacket): Promise<Reply> {
    const [question, ...more] = questions;
    if (((flags >> OPCODE_SHIFT) & OPCODE_MASK) !== 0) return { rcode: RCODE.notImplemented };
    if (!question || more.length > 0 || (question.class ?? "IN") !== "IN") return { rcode: RCODE.malformed };
    const name = hostName(question.name);
    const { policy } = sandbox;
    const isAllowed = name !== undefined && (judgeName(policy, name).isAllowed || (policy.proxy !== undefined && !policy.isAllDenied));
    const about = { protocol: "dns", name: question.name.slice(0, 253), address: "", port: PORT } as const;
    if (!isAllowed) {
      sandbox.refused(about, "name_not_allowed");
      return { rcode: RCODE.refused };
    }
    // The proxy looks names up, and nobody else is asked.
    if (policy.proxy) return { rcode: RCODE.ok, answers: standInFor(sandbox, name, question) };
    const result = await answerTo(this.#options.lookup, name, question);
    if (result.kind === "answers") return { rcode: RCODE.ok, answers: result.answers };
    if (result.kind !== "closed") return { rcode: result.kind === "no_such_name" ? RCODE.noSuchName : RCODE.failed };
    sandbox.refused({ ...about, address: result.address }, "own_network");
    return { rcode: RCODE.refused };
  }

  async close(): Promise<void> {
    const udp = this.#udp;
    this.#udp = undefined;
    await Promise.all([
      new Promise((resolve) => this.#tcp.close(resolve)),
      udp && new Promise<void>((resolve) => udp.close(() => resolve())),
    ]);
  }
}

function standInFor({ standIns }: SandboxEgress, name: string, question: Question): Answer[] {
  return question.type === "A" ? [{ type: "A", name: question.name, ttl: STAND_IN_TTL_SECONDS, data: standIns.addressOf(name) }] : [];
}

const EXTENDED: OptAnswer = {
  type: "OPT",
  name: ".",
  udpPayloadSize: MAX_UDP_BYTES,
  extendedRcode: 0,
  ednsVersion: 0,
  flags: 0,
  flag_do: false,
  options: [],
};

interface Reply {
  readonly rcode: number;
  readonly answers?: readonly Answer[];
  readonly isTruncated?: boolean;
}

function read(message: Buffer): DecodedPacket | undefined {
  try {
    const packet = decode(message);
    return packet.type === "query" ? packet : undefined;
  } catch {
    return undefined;
  }
}

function reply(query: DecodedPacket, { rcode, answers = [], isTruncated = false }: Reply): Buffer {
  const isExtended = query.additionals?.some(({ type }) => type === "OPT") ?? false;
  return encode({
    type: "response",
    id: query.id ?? 0,
    flags: ((query.flags ?? 0) & RECURSION_DESIRED) | RECURSION_AVAILABLE | (isTruncated ? TRUNCATED_RESPONSE : 0) | rcode,
    questions: query.questions ?? [],
    answers: [...answers],
    ...(isExtended ? { additionals: [EXTENDED] } : {}),
  });
}

function mostBytes({ additionals = [] }: DecodedPacket): number {
  const extended = additionals.find(({ type }) => type === "OPT") as { udpPayloadSize?: number } | undefined;
  return Math.min(Math.max(extended?.udpPayloadSize ?? MIN_UDP_BYTES, MIN_UDP_BYTES), MAX_UDP_BYTES);
}
