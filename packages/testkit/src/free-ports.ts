import { createServer, type Server } from "node:net";
import { errnoOf } from "@skerry/base";

/**
 * Below the range that the kernel gives to whoever does not name a port: another test would get one of ours between our asking and
 * our platform's listening, and be taken for it. Each process begins elsewhere, because other runs do the same.
 */
const FIRST = 20_000;
const COUNT = 12_000;
const STRIDE = 16;

let next = (process.pid * STRIDE) % COUNT;

/** Ports of loopback that are free now. All are held until all are known. */
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
