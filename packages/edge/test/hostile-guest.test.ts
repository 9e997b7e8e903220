import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { fetchThrough, hostOf, RawClient } from "./client.ts";
import { Faults } from "./faults.ts";
import { createWorld, type World } from "./parts.ts";

const PLAIN = `GET / HTTP/1.1\r\nHost: ${hostOf(3000)}\r\nConnection: close\r\n\r\n`;
const UPGRADE = `GET / HTTP/1.1\r\nHost: ${hostOf(3000)}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`;

/** What a client gets for `request` when the program in the sandbox says `answer`. */
async function exchange(world: World, request: string, answer: string): Promise<string> {
  await world.serveTcp(3000, (socket) => socket.once("data", () => socket.end(Buffer.from(answer, "latin1"))));
  const received = await new RawClient(world.port).send(request).untilClosed();
  await sleep(20);
  return received;
}

test.each([
  ["a request", PLAIN],
  ["an upgrade", UPGRADE],
])("a status out of range, as the answer to %s, is a 502", async (_name, request) => {
  using faults = new Faults();
  await using world = await createWorld("direct");
  for (const status of ["099", "000"]) {
    const received = await exchange(world, request, `HTTP/1.1 ${status} X\r\nContent-Length: 0\r\n\r\n`);
    expect([received.slice(0, 12), faults.seen]).toEqual(["HTTP/1.1 502", []]);
    expect(received).toContain("port is not open");
  }
});

test.each([
  ["a request", PLAIN],
  ["an upgrade", UPGRADE],
])("a reason with control characters, in the answer to %s, is replaced", async (_name, request) => {
  using faults = new Faults();
  await using world = await createWorld("direct");
  const received = await exchange(world, request, "HTTP/1.1 200 a\x01b\r\nContent-Length: 2\r\n\r\nok");
  expect([received.slice(0, 17), received.slice(-2), faults.seen]).toEqual(["HTTP/1.1 200 OK\r\n", "ok", []]);
  const odd = await exchange(world, request, "HTTP/1.1 799 caf\xe9\r\nContent-Length: 2\r\n\r\nok");
  expect([odd.slice(0, 19), faults.seen]).toEqual(["HTTP/1.1 799 caf\xe9\r\n", []]);
});

test("the reason of a 101 is replaced likewise", async () => {
  using faults = new Faults();
  await using world = await createWorld("direct");
  const answer = "HTTP/1.1 101 a\x01b\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nhello";
  const received = await exchange(world, UPGRADE, answer);
  expect([received.slice(0, 34), received.slice(-5), faults.seen]).toEqual(["HTTP/1.1 101 Switching Protocols\r\n", "hello", []]);
});

test("an answer that has no body announces no chunks and no trailer", async () => {
  using faults = new Faults();
  await using world = await createWorld("direct");
  for (const status of ["204 No Content", "304 Not Modified"]) {
    const answer = `HTTP/1.1 ${status}\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n`;
    for (const request of [PLAIN, UPGRADE]) {
      const received = await exchange(world, request, answer);
      expect([received.slice(0, 12), faults.seen]).toEqual([`HTTP/1.1 ${status.slice(0, 3)}`, []]);
      expect(received).not.toMatch(/chunked|trailer/i);
    }
  }
});

test("a refusal that cannot be explained resets one connection", async () => {
  using faults = new Faults();
  await using world = await createWorld("direct");
  await world.serveTcp(3000, (socket) => socket.once("data", () => socket.resetAndDestroy()));
  const forget = world.routes.forget;
  for (const request of [PLAIN, UPGRADE]) {
    world.routes.forget = () => {
      throw new Error("a mistake of ours");
    };
    const client = new RawClient(world.port).send(request);
    await client.closed;
    expect([client.error?.message, faults.seen]).toEqual(["read ECONNRESET", []]);
  }
  world.routes.forget = forget;
  expect((await fetchThrough(world.port, 3000)).status).toBe(502);
});
