import { createServer, type Server } from "node:net";
import { errnoOf } from "@skerry/base";

/**
 * Ports below the ephemeral range of the kernel. Otherwise another test could get such a port before the platform listens on it, and
 * would be mistaken for the platform. Each process starts at another port, because other test runs do the same.
 */
const FIRST = 20_000;
const COUNT = 12_000;
const STRIDE = 16;

let next = (process.pid * STRIDE) % COUNT;

/** Finds free ports on loopback. It holds each port until it has found all of them. */
export async function freePorts(count: number): Promise<number[]> {
  const held: Server[] = [];
  const ports: number[] = [];
  while (ports.length < count) {
    const port = FIRST + (next % COUNT);
    next += 1;
    const server = await tryToListen(port);
    if (!server) continue;
    held.push(server);
    ports.push(port);
  }
  await Promise.all(held.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

function tryToListen(port: number): Promise<Server | undefined> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", (error) => (errnoOf(error) === "EADDRINUSE" ? resolve(undefined) : reject(error)));
    server.listen(port, "127.0.0.1", () => resolve(server));
  });
}
