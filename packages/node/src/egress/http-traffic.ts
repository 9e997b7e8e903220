// Plain HTTP of sandboxes: each request is judged by its Host, and written anew, so that the server reads the request that was judged.

import {
  type ClientRequest,
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
  request as sendRequest,
} from "node:http";
import type { Socket } from "node:net";
import { type Duplex, pipeline } from "node:stream";
import type { Destination } from "@skerry/base/original-destination";
import { type Dial, DialFailure } from "./dial.ts";
import { headText, requestFields, responseFields } from "./http-fields.ts";
import { refusalText, refuse } from "./http-refusal.ts";
import { targetOf } from "./http-target.ts";
import { join } from "./join.ts";
import { openOutside } from "./outside.ts";
import { OutsideAgent, type OutsideArgs } from "./outside-agent.ts";
import type { Refusal, Verdict } from "./policy.ts";
import type { SandboxEgress } from "./sandbox-egress.ts";

const MAX_HEAD_BYTES = 64 * 1024;
/** Longer than servers keep idle connections: when a server closes its one, the client's is closed too. */
const IDLE_TIMEOUT_MS = 620_000;

/** A connection of a sandbox over which it sends requests. */
export interface HttpPassage {
  readonly sandbox: SandboxEgress;
  readonly original: Destination;
  /** Aborted when the client has gone. */
  readonly signal: AbortSignal;
}

interface Served extends HttpPassage {
  readonly agent: OutsideAgent;
  /** Requests that are not answered yet. */
  open: number;
  /** A server has closed its connection, so the client's is closed after its last answer. */
  isEnding: boolean;
}

interface Judged {
  readonly name: string | undefined;
  readonly rule: string;
}

export class HttpTraffic {
  readonly #dial: Dial;
  readonly #server: Server;
  readonly #served = new WeakMap<Duplex, Served>();

  constructor(dial: Dial) {
    this.#dial = dial;
    // It never listens: `serve` hands it connections.
    this.#server = createServer({
      maxHeaderSize: MAX_HEAD_BYTES,
      keepAliveTimeout: IDLE_TIMEOUT_MS,
      requireHostHeader: false,
      insecureHTTPParser: false,
    });
    this.#server.on("request", (request, response) => this.#forward(request, response));
    this.#server.on("checkContinue", (request, response) => this.#forward(request, response));
    this.#server.on("upgrade", (request, socket, head) => this.#upgrade(request, socket as Socket, head));
    this.#server.on("connect", (request, socket) => this.#refuseBroken(socket, request.url));
    this.#server.on("clientError", (_error, socket) => this.#refuseBroken(socket));
  }

  serve(passage: HttpPassage, socket: Socket): void {
    const agent = new OutsideAgent(() => {
      served.isEnding = true;
      if (served.open === 0) socket.end();
    });
    const served: Served = { ...passage, agent, open: 0, isEnding: false };
    this.#served.set(socket, served);
    socket.once("close", () => agent.destroy());
    this.#server.emit("connection", socket);
  }

  #forward(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    const served = this.#served.get(socket);
    if (!served) return void socket.destroy();
    const judged = this.#judge(served, request);
    if ("reason" in judged) return void refuse(response, judged.reason);
    served.open += 1;
    const outgoing = this.#send(served, request, judged);
    response.once("close", () => {
      served.open -= 1;
      outgoing.destroy();
      if (served.isEnding && served.open === 0) socket.end();
    });
    outgoing.on("continue", () => response.writeContinue());
    outgoing.on("response", (incoming) => {
      response.writeHead(incoming.statusCode ?? 502, incoming.statusMessage, responseFields(incoming.rawHeaders));
      pipeline(incoming, response, (error) => error && socket.resetAndDestroy());
    });
    outgoing.on("error", (error) => {
      if (error instanceof DialFailure && !response.headersSent) refuse(response, error.reason);
      else socket.resetAndDestroy();
    });
    request.on("error", () => outgoing.destroy());
    request.pipe(outgoing);
  }

  #upgrade(request: IncomingMessage, socket: Socket, head: Buffer): void {
    const served = this.#served.get(socket);
    if (!served) return void socket.destroy();
    socket.on("error", () => {});
    const judged = this.#judge(served, request);
    if ("reason" in judged) return void socket.end(refusalText(judged.reason));
    served.open += 1;
    const outgoing = this.#send(served, request, judged);
    outgoing.on("upgrade", (incoming, outside, firstBytes) => {
      socket.write(headText(incoming, { isUpgrade: true }));
      if (firstBytes.length > 0) outside.unshift(firstBytes);
      if (head.length > 0) socket.unshift(head);
      join(socket, outside as Socket);
    });
    outgoing.on("response", (incoming) => {
      socket.write(headText(incoming));
      pipeline(incoming, socket, () => socket.destroySoon());
    });
    outgoing.on("error", (error) => {
      if (error instanceof DialFailure) socket.end(refusalText(error.reason));
      else socket.resetAndDestroy();
    });
    outgoing.end();
  }

  #judge({ sandbox, original }: Served, request: IncomingMessage): Judged | { readonly reason: Refusal } {
    const target = targetOf(request);
    const name = "reason" in target ? undefined : target.name;
    const verdict: Verdict = "reason" in target ? { isAllowed: false, reason: target.reason } : sandbox.judge(name, original);
    if (verdict.isAllowed) return { name: verdict.rule === "" ? undefined : name, rule: verdict.rule };
    sandbox.refused({ protocol: "http", name: name ?? "", ...original }, verdict.reason);
    return verdict;
  }

  #send({ agent, sandbox, original, signal }: Served, request: IncomingMessage, { name, rule }: Judged): ClientRequest {
    const target = { ...original, name };
    const args: OutsideArgs = {
      agent,
      open: () => openOutside(this.#dial, { sandbox, target, protocol: "http", rule, signal }),
      host: name ?? original.address,
      port: original.port,
      method: request.method ?? "GET",
      path: request.url ?? "/",
      headers: requestFields(request),
      setHost: false,
    };
    return sendRequest(args);
  }

  #refuseBroken(socket: Duplex, target = ""): void {
    const served = this.#served.get(socket);
    if (!served || !socket.writable) return void socket.destroy();
    served.sandbox.refused({ protocol: "http", name: target.slice(0, 253), ...served.original }, "bad_request");
    socket.on("error", () => {});
    socket.end(refusalText("bad_request"), () => socket.destroy());
  }
}
