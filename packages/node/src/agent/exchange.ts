// One HTTP request to a sandbox's agent. Hostile guests can take the agent's place, so every answer is bounded in time and in size.

import { request } from "node:http";
import { connect, type Socket } from "node:net";
import { AGENT_PORT } from "@skerry/wire";

const CONNECT_TIMEOUT_MS = 2_000;
const MAX_ANSWER_BYTES = 64 * 1024;

export interface AgentRequest {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body?: string | Uint8Array;
  /** Of the body; `application/json` if undefined. */
  readonly contentType?: string;
  /** The sandbox's access token; "" or undefined for none. */
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface AgentAnswer {
  readonly status: number;
  /** The body, read as Latin-1. */
  readonly text: string;
  readonly serverTiming?: string | undefined;
}

/** Connects to the agent's port, or rejects with the error of the system call. */
export function connectAgent(address: string, timeoutMs = CONNECT_TIMEOUT_MS): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: address, port: AGENT_PORT, noDelay: true });
    socket.setTimeout(timeoutMs, () => socket.destroy(new Error(`no connection in ${timeoutMs} ms`)));
    socket.once("error", reject);
    socket.once("connect", () => {
      socket.setTimeout(0);
      socket.removeListener("error", reject);
      resolve(socket);
    });
  });
}

/**
 * Sends a request on a new connection and closes the connection. Rejects when the answer is incomplete, is an upgrade, takes longer than
 * `timeoutMs` or exceeds 64 KiB.
 */
export function exchange(socket: Socket, asked: AgentRequest, { timeoutMs }: { timeoutMs: number }): Promise<AgentAnswer> {
  return new Promise((resolve, reject) => {
    const { method, path, body } = asked;
    const outgoing = request({ createConnection: () => socket, path, method, headers: headersOf(asked) });
    const timer = setTimeout(() => outgoing.destroy(new Error(`no answer in ${timeoutMs} ms`)), timeoutMs);
    outgoing.once("response", (response) => {
      let text = "";
      response.setEncoding("latin1");
      response.on("data", (chunk: string) => {
        text += chunk;
        if (text.length > MAX_ANSWER_BYTES) outgoing.destroy(new Error("its answer is too long"));
      });
      response.once("error", reject);
      response.once("end", () => {
        resolve({ status: response.statusCode ?? 0, text, serverTiming: String(response.headers["server-timing"] ?? "") });
        outgoing.destroy();
      });
    });
    outgoing.once("upgrade", (_response, upgraded) => {
      upgraded.destroy();
      reject(new Error("the agent's port answered with an upgrade"));
    });
    outgoing.on("error", reject);
    outgoing.once("close", () => {
      clearTimeout(timer);
      reject(new Error("the connection ended without an answer"));
    });
    outgoing.end(body);
  });
}

function headersOf({ body, contentType = "application/json", token, headers }: AgentRequest): Record<string, string | number> {
  return {
    Host: "agent",
    ...(body === undefined ? {} : { "Content-Type": contentType, "Content-Length": Buffer.byteLength(body) }),
    ...(token ? { "X-Access-Token": token } : {}),
    ...headers,
  };
}
