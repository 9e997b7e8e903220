// Access to a sandbox's agent and servers through the tunnels of a node.

import { Agent, request } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type Client, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { Process } from "@skerry/wire/process";

export interface Dials {
  dial(sandboxId: string, port: number): Promise<Socket>;
}

class TunnelAgent extends Agent {
  readonly #dial: () => Promise<Socket>;
  constructor(dial: () => Promise<Socket>) {
    super({ keepAlive: false });
    this.#dial = dial;
  }
  override createConnection(_options: object, callback?: (error: Error | null, socket: Duplex) => void): undefined {
    this.#dial().then(
      (socket) => callback?.(null, socket),
      (error: Error) => callback?.(error, undefined as unknown as Duplex),
    );
  }
}

export function processesOf(node: Dials, sandboxId: string, token = "a-token"): Client<typeof Process> {
  const transport = createConnectTransport({
    baseUrl: "http://agent",
    httpVersion: "1.1",
    nodeOptions: { agent: new TunnelAgent(() => node.dial(sandboxId, 49_983)) },
    interceptors: [
      (next) => (call) => {
        call.header.set("X-Access-Token", token);
        call.header.set("Authorization", `Basic ${Buffer.from("root:").toString("base64")}`);
        return next(call);
      },
    ],
  });
  return createClient(Process, transport);
}

/** Runs a program to its end, and returns its output. */
export async function run(processes: Client<typeof Process>, cmd: string, args: readonly string[]): Promise<string> {
  let output = "";
  for await (const { event } of processes.start({ process: { cmd, args: [...args] }, stdin: false })) {
    if (event?.event.case === "data" && event.event.value.output.case === "stdout") output += Buffer.from(event.event.value.output.value);
    if (event?.event.case === "end") break;
  }
  return output;
}

/** Starts a program that keeps running, and returns its pid. */
export async function startInBackground(processes: Client<typeof Process>, cmd: string, args: readonly string[]): Promise<number> {
  for await (const { event } of processes.start({ process: { cmd, args: [...args] }, stdin: false })) {
    if (event?.event.case === "start") return event.event.value.pid;
  }
  throw new Error(`${cmd} did not start`);
}

export async function getText(node: Dials, sandboxId: string, target: { port: number; path: string }): Promise<string> {
  const socket = await node.dial(sandboxId, target.port);
  return new Promise((resolve, reject) => {
    const outgoing = request({ createConnection: () => socket, path: target.path, headers: { Host: "guest" } }, async (response) => {
      let text = "";
      try {
        for await (const chunk of response) text += chunk;
        resolve(text);
      } catch (error) {
        reject(error);
      }
    });
    outgoing.on("error", reject);
    outgoing.end();
  });
}
