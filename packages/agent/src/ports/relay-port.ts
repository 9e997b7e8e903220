// `CONNECT localhost:PORT` opens a raw connection to a server that listens only on 127.0.0.1 or ::1 of this sandbox. The node sends it
// after the sandbox's address refused the connection. So such a server is reachable from outside as soon as it listens.
//
// A forwarder on the sandbox's address for each such server was ruled out. It would have to poll for listeners (in every idle
// sandbox), it would notice each of them late, and it would keep the guest from binding 0.0.0.0:PORT.
//
// The agent deliberately checks no token here. Only the sandbox itself and the node can open a connection to send CONNECT on (the edge
// refuses the method), and both can connect to every port anyway.

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

/** Undefined when no server listens on the port. */
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

/** Forwards half-closes. When one side ends in any other way, the other side is reset. */
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
