// Idle WebSockets, and the memory that a proxy uses for them.

import { randomBytes } from "node:crypto";
import { type IncomingMessage, request } from "node:http";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { memoryOfMiB } from "../host-usage.ts";

const AT_ONCE = 20;
const SETTLE_MS = 10_000;

export interface Proxy {
  readonly port: number;
  readonly path: string;
  /** The sandboxes that share the WebSockets: the limit on open files of one may be lower. */
  readonly hosts: readonly string[];
  pids(): number[];
}

/** MiB that the processes of the proxy have more with `count` idle WebSockets than before, without the buffers of the kernel. */
export async function idleWebSockets(proxy: Proxy, count: number): Promise<number> {
  const before = memoryOfMiB(proxy.pids());
  const sockets: Duplex[] = [];
  try {
    const openMany = async () => {
      while (sockets.length < count) {
        const slot = sockets.push(undefined as never) - 1;
        sockets[slot] = await openWebSocket(proxy, slot);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, openMany));
    await sleep(SETTLE_MS);
    const closed = sockets.filter(({ destroyed }) => destroyed).length;
    if (closed > 0) throw new Error(`${closed} of ${count} WebSockets were closed`);
    return memoryOfMiB(proxy.pids()) - before;
  } finally {
    for (const socket of sockets) socket?.destroy();
  }
}

function openWebSocket({ port, path, hosts }: Proxy, nth: number): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const headers = { Host: hosts[nth % hosts.length], Upgrade: "websocket", Connection: "Upgrade", "Sec-WebSocket-Version": "13" };
    const key = randomBytes(16).toString("base64");
    const opening = request({ host: "127.0.0.1", port, path, agent: false, headers: { ...headers, "Sec-WebSocket-Key": key } });
    opening.once("upgrade", (_answer: IncomingMessage, socket: Duplex) => resolve(socket.on("error", () => {}).resume()));
    opening.once("response", async (answer: IncomingMessage) => {
      const text = Buffer.concat(await answer.toArray()).toString();
      reject(new Error(`WebSocket ${nth} was answered with ${answer.statusCode}: ${text}`));
    });
    opening.once("error", reject).end();
  });
}
