import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { fetchThrough, hostOf, RawClient } from "./client.ts";
import { Faults } from "./faults.ts";
import { createWorld, type Reach, SANDBOX_ID } from "./parts.ts";

type Random = () => number;

/** Returns the same numbers for the same seed, so that a failure can be reproduced. */
function randomFrom(seed: number): Random {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const pick = <T>(random: Random, from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;

/** Changes, drops or repeats a few bytes of a Latin-1 text. */
function mutate(random: Random, text: string): string {
  if (random() < 0.5) return text;
  let out = text;
  for (let n = 0; n < 1 + random() * 3; n++) {
    const at = Math.floor(random() * out.length);
    const kind = random();
    const middle = kind < 0.6 ? String.fromCharCode(Math.floor(random() * 256)) : kind < 0.8 ? "" : out.slice(at, at + 20).repeat(2);
    out = out.slice(0, at) + middle + out.slice(at + 1);
  }
  return out;
}

function answerText(random: Random): string {
  const status = pick(random, [
    "200",
    "204",
    "304",
    "101",
    "100",
    "103",
    "099",
    "000",
    "999",
    "502",
    "1000",
    String(Math.floor(random() * 1000)),
  ]);
  const reason = pick(random, ["OK", "", "a\x01b", "caf\xe9", "\x7f", "x".repeat(3_000)]);
  const framing = pick(random, [
    "Content-Length: 5\r\n",
    "Content-Length: 300000\r\n",
    "Content-Length: -1\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: gzip\r\n",
    "Transfer-Encoding: chunked\r\nTrailer: X\r\n",
    "Trailer: X\r\n",
    "",
  ]);
  const more = pick(random, [
    "",
    "Connection: Upgrade\r\nUpgrade: websocket\r\n",
    "Connection: keep-alive\r\n",
    "X: \xff\r\n",
    "Location: //\xff\r\nSet-Cookie: a; path=/;;path\r\n",
    "Location: http://paths.skerry.test:x/\r\nClear-Site-Data: *\r\n",
    "Date: \r\n",
  ]);
  const body = pick(random, ["hello", "5\r\nhello\r\n0\r\n\r\n", "5\r\nhello\r\n0\r\nX: a\r\nHost: b\r\n\r\n", "z".repeat(300_000), ""]);
  const before = random() < 0.2 ? pick(random, ["HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 Early\r\nX: y\r\n\r\n"]) : "";
  return mutate(random, `${before}HTTP/1.1 ${status} ${reason}\r\n${framing}${more}\r\n${body}`);
}

const PATH_HOST = "paths.skerry.test";
const LINK = `lnk_${"a".repeat(20)}.${"s".repeat(43)}`;
const AT = `/s/${SANDBOX_ID}/3000`;
const PATHS = [`GET ${AT}/`, `POST ${AT}`, `GET ${AT}/%2e./`, `GET ${AT}//x?skerry-link=${LINK}`, `GET /?skerry-link=${LINK}&skerry-link=`];

function requestText(random: Random): string {
  const line = pick(random, [
    "GET /",
    "HEAD /",
    "POST /",
    "OPTIONS *",
    "PUT /\xff",
    "CONNECT x:1",
    "GET /?a=%",
    "DELETE /a/../b",
    ...PATHS,
  ]);
  const host = pick(random, [
    hostOf(3000),
    hostOf(3000),
    hostOf(3000),
    hostOf(3001),
    hostOf(3000, "iunknown"),
    "nowhere",
    PATH_HOST,
    PATH_HOST,
  ]);
  const more = pick(random, [
    "",
    "",
    "Connection: Upgrade\r\nUpgrade: websocket\r\n",
    "Connection: close\r\n",
    "Expect: 100-continue\r\nContent-Length: 3\r\n",
    "Content-Length: 3\r\n",
    "Transfer-Encoding: chunked\r\nTrailer: X\r\n",
    "Trailer: X\r\n",
    "TE: trailers\r\nConnection: TE, host\r\n",
    "Expect: tea\r\n",
    `E2b-Sandbox-Id: ${SANDBOX_ID}\r\nE2b-Sandbox-Port: 3001\r\n`,
    `Skerry-Link-Token: ${LINK}\r\n`,
    `Cookie: a; skerry-link=${LINK};;skerry-link=x\r\n`,
  ]);
  const body = more.includes("Length") ? "abc" : more.includes("chunked") ? "3\r\nabc\r\n0\r\nX: y\r\n\r\n" : "";
  return mutate(random, `${line} HTTP/1.${random() < 0.1 ? 0 : 1}\r\nHost: ${host}\r\n${more}\r\n${body}`);
}

const SEED = Number(process.env.FUZZ_SEED ?? 20_261_120);
const ROUNDS = Number(process.env.FUZZ_ROUNDS ?? 400);

test.each<Reach>(["direct", "connect"])("hostile clients and hostile servers at once end nothing: a %s dial", async (reach) => {
  using faults = new Faults();
  const random = randomFrom(SEED);
  const findLink = async () => (random() < 0.5 ? { expiresInMs: 10_000, methods: [] } : undefined);
  await using world = await createWorld(reach, { pathHost: PATH_HOST, findLink });
  await world.serveTcp(3000, (socket) => {
    socket.once("data", () => {
      const text = Buffer.from(answerText(random), "latin1");
      const cut = random() < 0.3 ? Math.floor(random() * text.length) : text.length;
      socket.write(text.subarray(0, cut));
      const end = random();
      if (end < 0.4) socket.end();
      else if (end < 0.6) setTimeout(() => socket.resetAndDestroy(), random() * 5);
      else if (end < 0.7) socket.resetAndDestroy();
      else if (cut < text.length) setTimeout(() => socket.end(text.subarray(cut)), random() * 5);
    });
  });
  await world.serve(3001, (_req, res) => res.end("alive"));

  for (let round = 0; round < ROUNDS / 20; round++) {
    const clients = Array.from({ length: 20 }, () => {
      const client = new RawClient(world.port);
      const requests = Array.from({ length: 1 + Math.floor(random() * 4) }, () => requestText(random)).join("");
      client.send(Buffer.from(requests, "latin1"));
      if (random() < 0.3) client.socket.end();
      if (random() < 0.2) setTimeout(() => client.socket.resetAndDestroy(), random() * 10);
      return client;
    });
    await sleep(40);
    for (const client of clients) client.socket.destroy();
    expect([round, faults.seen]).toEqual([round, []]);
  }
  expect((await fetchThrough(world.port, 3001)).body.toString()).toBe("alive");
  expect(faults.seen).toEqual([]);
});
