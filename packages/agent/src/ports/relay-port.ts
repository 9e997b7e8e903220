// `CONNECT localhost:PORT`: a raw connection to a server that listens only on this sandbox's own 127.0.0.1 or ::1. The node asks
// for one after the sandbox's address refused, so such servers are reachable from outside as soon as they listen.
//
// A forwarder that listens on the sandbox's address for each of them was ruled out: it has to look for listeners again and again
// (in every idle sandbox), is late by as much, and keeps the guest from binding 0.0.0.0:PORT while it listens.
//
// Nothing is checked on purpose. Only the sandbox itself and the node can open a connection on which to say CONNECT (the edge
// refuses the method), and both may connect to every port already.

import type { IncomingMessage } from "node:http";
import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { parsePort } from "@skerry/wire";

const LOOPBACK = ["127.0.0.1", "::1"];
const TARGET = /^localhost:(\d+)$/;

export async function relayPort(req: IncomingMessage, client: Duplex, head: Buffer): Promise<void> {
  client.on("error", () => client.destroy());
  const port = parsePort(TARGET.exec(req.url ?? "")?.[1] ?? "");
  if (port === undefined) return refuse(client, "400 Bad Request");
  for (const host of LOOPBACK) {
    const server = await open(host, port);
    if (server) return join({ client, server, head });
  }
  refuse(client, "502 Bad Gateway");
}

/** Undefined: nothing listens there. */
function open(host: string, port: number): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, allowHalfOpen: true, noDelay: true });
    const refused = () => resolve(undefined);
    socket.once("error", refused);
    socket.once("connect", () => {
      socket.removeListener("error", refused);
      resolve(socket);
    });
  });
}

/** Half-closes pass; an end of one side in any other way resets the other. */
function join({ client, server, head }: { client: Duplex; server: Socket; head: Buffer }): void {
  server.once("error", () => reset(client));
  server.once("close", () => (server.readableEnded ? client.end() : reset(client)));
  client.once("close", () => server.resetAndDestroy());
  if (client.destroyed) {
    server.resetAndDestroy();
    return;
  }
  client.write("HTTP/1.1 200 OK\r\n\r\n");
  if (head.length > 0) server.write(head);
  server.pipe(client);
  client.pipe(server);
}

function refuse(client: Duplex, status: string): void {
  client.end(`HTTP/1.1 ${status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);
}

function reset(client: Duplex): void {
  if ("resetAndDestroy" in client && typeof client.resetAndDestroy === "function") client.resetAndDestroy();
  else client.destroy();
}
