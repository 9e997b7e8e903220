// Fuzzes the protocol at byte level. The agent runs on this machine as root, so only methods without side effects are called.
// Methods that change files or start programs are fuzzed inside a sandbox, in tests/fault/agent-fuzz.test.ts.

import { readdirSync, readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { scaled } from "@skerry/testkit/depth";
import fc from "fast-check";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { agentOfFile, run } from "./agent-under-test.ts";
import { exchangeBytes, type Leave } from "./raw-socket.ts";

const RUNS = scaled("random requests of each kind to an agent", { sample: 60, full: 500 });
const MIB = 1024 * 1024;

const agent = await agentOfFile();
let fresh: { rss: number; descriptors: number };

beforeAll(async () => {
  // Load everything that is loaded late.
  await run(agent, "true");
  await agent.fetch("/files?path=/etc/hostname");
  await agent.fetch("/metrics");
  fresh = { rss: rss(), descriptors: descriptors() };
});

/** No input has ended the agent, leaked a connection, or leaked memory. */
afterEach(async () => {
  expect((await agent.fetch("/health")).status).toBe(204);
  expect((await run(agent, "echo", ["alive"])).stdout).toBe("alive\n");
  await expect.poll(descriptors).toBeLessThan(fresh.descriptors + 10);
  await expect.poll(rss, { interval: 500 }).toBeLessThan(fresh.rss + 150 * MIB);
});

function rss(): number {
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${agent.pid}/status`, "utf8"))?.[1]) * 1024;
}

function descriptors(): number {
  return readdirSync(`/proc/${agent.pid}/fd`).length;
}

const leave = fc.constantFrom<Leave>("end", "reset", "stay");
const bytes = (maxLength: number) => fc.uint8Array({ maxLength });
const text = (value: string) => Buffer.from(value, "latin1");

/** Cuts bytes into pieces, and may drop the last one. */
const pieces = (whole: fc.Arbitrary<Uint8Array>) =>
  fc.tuple(whole, fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 3 }), fc.boolean()).map(([all, cuts, lose]) => {
    const at = [0, ...cuts.map((cut) => Math.floor(cut * all.length)).sort((a, b) => a - b), all.length];
    const parts = at.slice(1).map((end, index) => all.subarray(at[index], end));
    return lose ? parts.slice(0, -1) : parts;
  });

/** Every response is HTTP, and none reports a failure inside the agent. */
function assertSane(answer: Buffer): void {
  if (answer.length === 0) return;
  const start = answer.toString("latin1", 0, 1000);
  expect(start).toMatch(/^HTTP\/1\.1 [1-5]\d\d /);
  // The Connect library sends 500 for a malformed binary message.
  if (!start.includes('"parse binary: ')) expect(start).not.toMatch(/^HTTP\/1\.1 500 /);
}

const fuzz = async (parts: fc.Arbitrary<readonly Uint8Array[]>) => {
  await fc.assert(
    fc.asyncProperty(parts, leave, async (sent, how) => {
      assertSane(await exchangeBytes(agent.port, sent, how, 25));
    }),
    { numRuns: RUNS },
  );
};

describe("the agent survives", () => {
  it("bytes that are not HTTP", async () => {
    await fuzz(pieces(bytes(2_000)));
  });

  it("requests that are nearly HTTP", async () => {
    const token = fc.constantFrom("GET", "get", "POST", "OPTIONS", "CONNECT", "TRACE", "G\0T", "", "PRI");
    const target = fc.oneof(
      fc.constantFrom(
        "/",
        "*",
        "/health",
        "/files",
        "/files?path=%00",
        "/files?path=%ff",
        "/files?path=..%2f..",
        "http://[::1/",
        "localhost:0",
        "//",
      ),
      fc.string({ unit: "binary", maxLength: 40 }).map((path) => `/${path}`),
    );
    const header = fc.oneof(
      fc.constantFrom(
        "Content-Length: 5",
        "Content-Length: -1",
        "Content-Length: 99999999999999999999",
        "Transfer-Encoding: chunked",
        "Transfer-Encoding: gzip, chunked",
        "Connection: upgrade\r\nUpgrade: h2c",
        "Expect: 100-continue",
        "Range: bytes=9999999999999999999-",
        "Accept-Encoding: gzip;q=9e99, *;q=",
        "Authorization: Basic //8=",
        "X-Access-Token: \xff",
        "Connect-Timeout-Ms: 99999999999999999999",
        "If-Modified-Since: the day before",
        " folded",
      ),
      fc.tuple(fc.string({ maxLength: 20 }), fc.string({ unit: "binary", maxLength: 60 })).map(([name, value]) => `${name}: ${value}`),
    );
    const request = fc
      .record({
        token,
        target,
        headers: fc.array(header, { maxLength: 6 }),
        body: bytes(100),
        version: fc.constantFrom("1.1", "1.0", "2.0", "9"),
      })
      .map(({ headers, body, ...line }) =>
        Buffer.concat([
          text(`${line.token} ${line.target} HTTP/${line.version}\r\nHost: a\r\n${headers.map((one) => `${one}\r\n`).join("")}\r\n`),
          body,
        ]),
      );
    await fuzz(pieces(request));
  });

  it("envelopes that are broken, that lie about their length, and streams that end early", async () => {
    const method = fc.constantFrom(
      "process.Process/List",
      "process.Process/Connect",
      "process.Process/StreamInput",
      "process.Process/SendInput",
      "process.Process/Update",
      "filesystem.Filesystem/Stat",
      "filesystem.Filesystem/ListDir",
      "filesystem.Filesystem/GetWatcherEvents",
    );
    const type = fc.constantFrom(
      "application/connect+json",
      "application/connect+proto",
      "application/json",
      "application/proto",
      "text/html",
      "",
    );
    const payload = fc.oneof(
      bytes(200),
      fc.json().map((value) => Buffer.from(value)),
      fc.constantFrom(
        text('{"process":{"pid":4294967295}}'),
        text('{"process":{"tag":"\\ud800"}}'),
        text('{"start":{"process":{"pid":1}}}'),
        text('{"path":"/etc/hostname"}'),
        text('{"path":"/etc\\u0000/hostname"}'),
        text('{"path":"~nobody"}'),
        gzipSync("{}"),
        Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f]),
      ),
    );
    const envelope = fc
      .tuple(
        fc.constantFrom(0, 0, 0, 1, 2, 3, 255),
        payload,
        fc.constantFrom<number | undefined>(undefined, undefined, 0, 1, 0x7fffffff, 0xffffffff),
      )
      .map(([flags, data, lie]) => {
        const head = Buffer.alloc(5);
        head.writeUInt8(flags, 0);
        head.writeUInt32BE(lie ?? data.length, 1);
        return Buffer.concat([head, data]);
      });
    const body = fc.oneof(
      fc.array(envelope, { maxLength: 4 }).map((all) => Buffer.concat(all)),
      payload,
    );
    const extra = fc.constantFrom(
      "",
      "Content-Encoding: gzip\r\n",
      "Content-Encoding: br\r\n",
      "Connect-Content-Encoding: gzip\r\n",
      "Connect-Protocol-Version: 2\r\n",
    );
    const request = fc
      .tuple(method, type, body, extra, fc.integer({ min: -5, max: 5 }))
      .map(([path, contentType, data, headers, lie]) =>
        Buffer.concat([
          text(`POST /${path} HTTP/1.1\r\nHost: a\r\nContent-Type: ${contentType}\r\nConnect-Timeout-Ms: 500\r\n${headers}`),
          text(`Content-Length: ${Math.max(0, data.length + (lie > 2 ? lie : 0))}\r\n\r\n`),
          data,
        ]),
      );
    await fuzz(pieces(request));
  });

  it("headers of any size", async () => {
    for (const size of [10_000, 100_000, 5_000_000]) {
      const answer = await exchangeBytes(
        agent.port,
        [text(`GET /health HTTP/1.1\r\nHost: a\r\nX: ${"x".repeat(size)}\r\n\r\n`)],
        "stay",
        500,
      );
      if (answer.length > 0) expect(answer.toString("latin1")).toMatch(size > 16_000 ? /^HTTP\/1\.1 431 / : /^HTTP\/1\.1 204 /);
    }
    const many = Array.from({ length: 20_000 }, (_, index) => `x${index}: y\r\n`).join("");
    assertSane(await exchangeBytes(agent.port, [text(`GET /health HTTP/1.1\r\nHost: a\r\n${many}\r\n`)], "stay", 500));
  });

  it("a small body that decompresses to a large one", async () => {
    const response = await agent.fetch("/process.Process/List", {
      method: "POST",
      headers: { "Content-Type": "application/json", "Content-Encoding": "gzip" },
      body: gzipSync(Buffer.alloc(300 * MIB, " ")),
    });
    expect(response.status).toBe(429);
    expect(await response.json()).toMatchObject({ code: "resource_exhausted" });
  });

  it("thousands of connections that send nothing, or half a request", async () => {
    const sockets: Socket[] = [];
    const count = scaled("connections to an agent that say nothing", { sample: 1_500, full: 10_000 });
    for (let index = 0; index < count; index += 1) {
      const socket = connect({ host: "127.0.0.1", port: agent.port });
      socket.on("error", () => {});
      if (index % 2 === 0) socket.write("POST /process.Process/Connect HTTP/1.1\r\nContent-Type: application/connect+json\r\nHo");
      sockets.push(socket);
      if (index % 200 === 0) await sleep(10);
    }
    expect((await agent.fetch("/health")).status).toBe(204);
    for (const socket of sockets) socket.resetAndDestroy();
  });

  it("hundreds of concurrent streams, and serves each of them", async () => {
    const count = 200;
    const outcomes = await Promise.all(Array.from({ length: count }, () => run(agent, "sh", ["-c", "sleep 1; echo $$"])));
    expect(new Set(outcomes.map(({ stdout, pid }) => stdout === `${pid}\n`))).toEqual(new Set([true]));
    expect((await agent.process.list({})).processes).toEqual([]);
  });

  it("streams that are opened and left at once", async () => {
    const envelope = text('\0\0\0\0\x4a{"process":{"cmd":"/bin/sleep","args":["0.2"]},"stdin":false,"tag":"left"}'.padEnd(5 + 0x4a));
    const head = `POST /process.Process/Start HTTP/1.1\r\nHost: a\r\nContent-Type: application/connect+json\r\nContent-Length: ${envelope.length}\r\n`;
    const request = Buffer.concat([text(`${head}\r\n`), envelope]);
    // The agent ends this connection after its answer.
    const started = await exchangeBytes(agent.port, [text(`${head}Connection: close\r\n\r\n`), envelope], "answered", 60_000);
    expect(started.toString("latin1")).toMatch(/"start"/);
    for (let round = 0; round < 10; round += 1) {
      await Promise.all(Array.from({ length: 20 }, () => exchangeBytes(agent.port, [request], "reset", 5)));
    }
    await expect.poll(async () => (await agent.process.list({})).processes.length).toBe(0);
  });
});
