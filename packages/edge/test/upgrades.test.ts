import type { Duplex } from "node:stream";
import { describe, expect, test } from "vitest";
import { hostOf, RawClient, waitFor } from "./client.ts";
import { createWorld, type Reach, SANDBOX_ID, type World } from "./parts.ts";

const upgrade = (path = "/") =>
  `GET ${path} HTTP/1.1\r\nHost: ${hostOf(3000)}\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: abc\r\nX-Forwarded-For: 1.1.1.1\r\n\r\n`;

async function serveUpgrades(world: World, onUpgrade: (socket: Duplex, head: Buffer) => void): Promise<string[][]> {
  const seen: string[][] = [];
  const server = await world.serve(3000, (_req, res) => res.writeHead(426, { "X-Plain": "1" }).end("x".repeat(3_000_000)));
  server.on("upgrade", (req, socket: Duplex, head: Buffer) => {
    seen.push(req.rawHeaders);
    socket.on("error", () => {});
    if (req.url === "/no") return socket.end("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
    socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: xyz\r\n\r\n");
    return onUpgrade(socket, head);
  });
  return seen;
}

describe.each<Reach>(["direct", "connect"])("upgrades over a %s dial", (reach) => {
  test("after a 101 bytes flow both ways as they come", async () => {
    await using world = await createWorld(reach);
    const seen = await serveUpgrades(world, (socket, head) => {
      if (head.length > 0) socket.write(`echo ${head}`);
      socket.on("data", (chunk) => socket.write(`echo ${chunk}`));
    });
    const client = new RawClient(world.port).send(upgrade());
    const head = await client.until("\r\n\r\n");
    expect(head).toMatch(/^HTTP\/1\.1 101 Switching Protocols\r\n/);
    expect(head).toContain("Connection: Upgrade\r\n");
    expect(head).toContain("Upgrade: websocket\r\n");
    expect(head).toContain("Sec-WebSocket-Accept: xyz\r\n");
    client.send("one");
    await client.until("echo one");
    client.send("two");
    await client.until("echo two");
    client.socket.destroy();
    expect(seen[0]).toEqual(["Host", hostOf(3000), "Sec-WebSocket-Key", "abc", "Upgrade", "websocket", "Connection", "Upgrade"]);
  });

  test("what the client sends right behind its head is not lost", async () => {
    await using world = await createWorld(reach);
    await serveUpgrades(world, (socket, head) => {
      if (head.length > 0) socket.write(`echo ${head}`);
      socket.on("data", (chunk) => socket.write(`echo ${chunk}`));
    });
    const client = new RawClient(world.port).send(`${upgrade()}early`);
    await client.until("early");
    client.socket.destroy();
  });

  test("an end in one direction leaves the other open", async () => {
    await using world = await createWorld(reach);
    await serveUpgrades(world, (socket) => {
      socket.resume();
      socket.once("end", () => {
        socket.write("I saw your end");
        setTimeout(() => socket.end(", here is mine"), 50);
      });
    });
    const client = new RawClient(world.port).send(upgrade());
    await client.until("\r\n\r\n");
    client.socket.end("last words");
    await client.until("I saw your end, here is mine");
    await client.untilClosed();
    expect(client.error).toBeUndefined();
  });

  test("a sandbox that dies resets the client, a client that dies closes the sandbox's side", async () => {
    await using world = await createWorld(reach);
    let closed = 0;
    await serveUpgrades(world, (socket) => {
      socket.once("close", () => closed++);
      socket.resume();
    });
    const first = new RawClient(world.port).send(upgrade());
    await first.until("\r\n\r\n");
    first.socket.resetAndDestroy();
    await waitFor(() => (closed === 1 ? true : undefined), "the sandbox's side to close");
    const second = new RawClient(world.port).send(upgrade());
    await second.until("\r\n\r\n");
    world.sandboxes.kill(SANDBOX_ID);
    await second.closed;
    expect(second.error).toMatchObject({ code: "ECONNRESET" });
    expect(second.ended).toBe(false);
  });

  test("another answer than 101 is passed on and ends the connection", async () => {
    await using world = await createWorld(reach);
    await serveUpgrades(world, () => {});
    const client = new RawClient(world.port).send(upgrade("/no"));
    const text = await client.untilClosed();
    expect(text).toMatch(/^HTTP\/1\.1 403 Forbidden\r\n/);
    expect(text).toMatch(/no$/);
  });

  test("a large answer other than 101 is passed on whole to a slow reader", async () => {
    await using world = await createWorld(reach);
    await world.serve(3000, (_req, res) => res.writeHead(200, { "X-Plain": "1" }).end("x".repeat(30_000_000)));
    const client = new RawClient(world.port);
    client.socket.pause();
    client.send(upgrade());
    await new Promise((resolve) => setTimeout(resolve, 200));
    client.socket.resume();
    const text = await client.untilClosed(20_000);
    expect(text.split("\r\n\r\n")[0]).toContain("X-Plain: 1");
    expect(text.length).toBeGreaterThan(30_000_000);
  });

  test("upgrades are checked like requests", async () => {
    await using world = await createWorld(reach);
    const closedPort = new RawClient(world.port).send(upgrade());
    expect(await closedPort.untilClosed()).toMatch(/^HTTP\/1\.1 502 .*port is not open/s);
    const reserved = new RawClient(world.port).send(upgrade("/init").replaceAll("3000-", "49983-"));
    expect(await reserved.untilClosed()).toMatch(/^HTTP\/1\.1 404 /);
    const unknown = new RawClient(world.port).send(upgrade().replaceAll(SANDBOX_ID, "iunknown"));
    expect(await unknown.untilClosed()).toMatch(/^HTTP\/1\.1 502 .*was not found/s);
  });

  test("a request that only offers h2c, or has a body, is an ordinary request", async () => {
    await using world = await createWorld(reach);
    await world.serve(3000, async (req, res) => {
      let body = "";
      for await (const chunk of req) body += chunk;
      res.end(`got ${body} upgrade ${req.headers.upgrade}`);
    });
    const offer = `Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQ\r\n`;
    const client = new RawClient(world.port).send(`POST / HTTP/1.1\r\nHost: ${hostOf(3000)}\r\n${offer}Content-Length: 4\r\n\r\nbody`);
    await client.until("got body upgrade undefined");
    client.socket.destroy();
  });
});
