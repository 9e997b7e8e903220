import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { fetchThrough, hostOf, RawClient, waitFor } from "./client.ts";
import { Faults } from "./faults.ts";
import { createWorld, type World } from "./parts.ts";

const PLAIN = `GET / HTTP/1.1\r\nHost: ${hostOf(3000)}\r\nConnection: close\r\n\r\n`;
const UPGRADE = `GET / HTTP/1.1\r\nHost: ${hostOf(3000)}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`;

/** Returns what a client receives for `request` when the program in the sandbox sends `answer`. */
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

/** Responses that end before the bytes "JUNK", by the method of the request. */
const OVERLONG: readonly (readonly [method: string, answer: string])[] = [
  ["GET", "204 No Content\r\n\r\n"],
  ["GET", "204 No Content\r\nContent-Length: 4\r\n\r\n"],
  ["GET", "204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n"],
  ["GET", "304 Not Modified\r\nContent-Length: 4\r\n\r\n"],
  ["HEAD", "200 OK\r\nContent-Length: 4\r\n\r\n"],
  ["GET", "200 OK\r\nContent-Length: 2\r\n\r\nok"],
  ["GET", "200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"],
];
const TIMES = ["in the same packet", "in a later one"] as const;
const CASES = TIMES.flatMap((time) =>
  ["close", "keep-alive"].flatMap((connection) => (["direct", "connect"] as const).map((reach) => ({ time, connection, reach }))),
);

test.each(CASES)(
  "bytes after an answer, $time ($connection, $reach), cost the sandbox its connection and the client nothing",
  async (one) => {
    using faults = new Faults();
    await using world = await createWorld(one.reach);
    await world.serve(3001, (_req, res) => res.end("honest"));
    for (const [method, answer] of OVERLONG) {
      const dropped = Promise.withResolvers<void>();
      await world.serveTcp(3000, (socket) => {
        socket.setNoDelay();
        for (const end of ["end", "close"]) socket.once(end, () => dropped.resolve());
        socket.once("data", () => {
          const head = `HTTP/1.1 ${answer.replace("\r\n", `\r\nConnection: ${one.connection}\r\n`)}`;
          if (one.time === "in the same packet") socket.write(`${head}JUNK`);
          else socket.write(head, () => setTimeout(() => socket.write("JUNK"), 5));
        });
        socket.resume();
      });
      const client = new RawClient(world.port).send(`${method} / HTTP/1.1\r\nHost: ${hostOf(3000)}\r\n\r\n`);
      await Promise.race([client.until("\r\n\r\n"), client.closed]);
      expect([client.received.slice(0, 12), client.error, faults.seen], answer).toEqual([`HTTP/1.1 ${answer.slice(0, 3)}`, undefined, []]);
      client.send(`GET / HTTP/1.1\r\nHost: ${hostOf(3001)}\r\nConnection: close\r\n\r\n`);
      const received = await client.untilClosed();
      expect([received.slice(-6), received.includes("JUNK"), received.includes("ok")], answer).toEqual([
        "honest",
        false,
        answer.includes("ok"),
      ]);
      await dropped.promise;
    }
  },
);

test.each(TIMES)(
  "an upgrade that is answered otherwise, with bytes after the answer %s: the answer arrives, the bytes do not",
  async (time) => {
    using faults = new Faults();
    await using world = await createWorld("direct");
    for (const [method, answer] of OVERLONG.filter(([method]) => method === "GET")) {
      const dropped = Promise.withResolvers<void>();
      await world.serveTcp(3000, (socket) => {
        for (const end of ["end", "close"]) socket.once(end, () => dropped.resolve());
        socket.once("data", () => {
          if (time === "in the same packet") socket.write(`HTTP/1.1 ${answer}JUNK`);
          else socket.write(`HTTP/1.1 ${answer}`, () => setTimeout(() => socket.write("JUNK"), 5));
        });
        socket.resume();
      });
      const client = new RawClient(world.port).send(UPGRADE.replace("GET", method));
      const received = await client.untilClosed();
      expect([received.slice(0, 12), received.includes("JUNK"), client.error, faults.seen], answer).toEqual([
        `HTTP/1.1 ${answer.slice(0, 3)}`,
        false,
        undefined,
        [],
      ]);
      await dropped.promise;
    }
  },
);

test("bytes after an interim answer are no answer: 502", async () => {
  using faults = new Faults();
  await using world = await createWorld("direct");
  for (const interim of ["100 Continue", "103 Early Hints"]) {
    const received = await exchange(world, PLAIN, `HTTP/1.1 ${interim}\r\n\r\nJUNK`);
    expect([received.slice(0, 12), received.includes("JUNK"), faults.seen]).toEqual(["HTTP/1.1 502", false, []]);
  }
});

test("a slow client gets the whole of an answer after which the sandbox sends more", async () => {
  using faults = new Faults();
  await using world = await createWorld("direct");
  const size = 200_000;
  await world.serveTcp(3000, (socket) => {
    socket.once("data", () => socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n${"a".repeat(size)}JUNK`));
  });
  const client = new RawClient(world.port);
  client.socket.pause();
  client.send(PLAIN);
  await waitFor(
    () => (world.sandboxes.dials === 1 && world.sandboxes.sockets.size === 0 ? true : undefined),
    "the end of the sandbox's connection",
  );
  client.socket.resume();
  const received = await client.untilClosed();
  expect([received.slice(0, 12), received.match(/a{2,}/)?.[0].length, received.includes("JUNK"), faults.seen]).toEqual([
    "HTTP/1.1 200",
    size,
    false,
    [],
  ]);
});
