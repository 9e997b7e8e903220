import type { Socket } from "node:net";
import { expect, test } from "vitest";
import { hostOf, RawClient, waitFor } from "./client.ts";
import { Faults } from "./faults.ts";
import { createWorld } from "./parts.ts";

const ANSWER = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

test.each([
  ["a request", "\r\n"],
  ["an upload that was not whole", "Content-Length: 10\r\n\r\nabc"],
  ["an upgrade that was declined", "Connection: Upgrade\r\nUpgrade: x\r\n\r\n"],
])("a server that keeps its connection after the answer to %s does not keep ours", async (_name, rest) => {
  using faults = new Faults();
  await using world = await createWorld("direct");
  await world.serveTcp(3000, (socket) => {
    socket.resume();
    socket.once("data", () => socket.write(ANSWER));
  });
  const client = new RawClient(world.port).send(`POST / HTTP/1.1\r\nHost: ${hostOf(3000)}\r\n${rest}`);
  await client.until("ok");
  await waitFor(() => (world.sandboxes.sockets.size === 0 ? true : undefined), "the sandbox's connection to close");
  client.socket.destroy();
  expect(faults.seen).toEqual([]);
});

test.each(["direct", "connect"] as const)(
  "an answer and a WebSocket may be silent for longer than a connection may idle, also behind earlier requests (%s)",
  async (reach) => {
    using faults = new Faults();
    await using world = await createWorld(reach, { idleTimeoutMs: 20 });
    const silent: Socket[] = [];
    await world.serveTcp(3000, (socket) => {
      socket.on("error", () => {});
      socket.on("data", (bytes) => {
        if (bytes.includes("GET /short")) socket.end(ANSWER);
        else if (bytes.includes("GET /stream")) socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n");
        else socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nfirst");
        if (!bytes.includes("GET /short")) silent.push(socket);
      });
    });
    const get = (path: string, more = "") => `GET ${path} HTTP/1.1\r\nHost: ${hostOf(3000)}\r\n${more}\r\n`;
    const idle = new RawClient(world.port).send(get("/short"));
    await idle.until("ok");
    const stream = new RawClient(world.port).send(get("/short"));
    await stream.until("ok");
    stream.send(get("/stream"));
    await stream.until("first");
    const socket = new RawClient(world.port).send(get("/short"));
    await socket.until("ok");
    socket.send(get("/socket", "Connection: Upgrade\r\nUpgrade: websocket\r\n"));
    await socket.until("first");
    // The idle connection is closed, so the time limits have been reached.
    await idle.untilClosed();
    for (const one of silent) one.write("4\r\nlate\r\n");
    await Promise.all([stream.until("late"), socket.until("late")]);
    for (const client of [stream, socket]) client.socket.destroy();
    expect(faults.seen).toEqual([]);
  },
);
