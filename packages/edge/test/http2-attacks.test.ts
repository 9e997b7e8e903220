// What a hostile client can send over HTTP/2: requests that mean another one over HTTP/1.1, and floods.

import { constants } from "node:http2";
import { expect, test } from "vitest";
import { hostOf, waitFor } from "./client.ts";
import { Faults } from "./faults.ts";
import { block, END_HEADERS, END_STREAM, FRAME, FrameClient, get, Http2Client } from "./http2-client.ts";
import { SANDBOX_ID } from "./parts.ts";
import { createTlsWorld, type TlsWorld } from "./tls-world.ts";

type Fields = (readonly [string, string])[];

const replaced = (name: string, value: string): Fields => get().map((field) => (field[0] === name ? [name, value] : field));
const POST = replaced(":method", "POST");

const MALFORMED: Record<string, Fields> = {
  "CR and LF in a value": [...get(), ["x", "a\r\nEvil: b"]],
  "LF in a value": [...get(), ["x", "a\nEvil: b"]],
  "NUL in a value": [...get(), ["x", "a\0b"]],
  "CR and LF in a name": [...get(), ["x: a\r\nevil", "b"]],
  "a colon in a name": [...get(), ["x:y", "b"]],
  "an upper-case name": [...get(), ["X-Y", "b"]],
  "an empty name": [...get(), ["", "b"]],
  "a space in the path": replaced(":path", "/ HTTP/1.1"),
  "a request in the path": replaced(":path", `/ HTTP/1.1\r\nHost: ${hostOf(3000)}\r\n\r\nGET /smuggled HTTP/1.1`),
  "a path without a slash": replaced(":path", "smuggled"),
  "an empty path": replaced(":path", ""),
  "a full URL as the path": replaced(":path", `http://${hostOf(3001)}/`),
  "no path": get().filter(([name]) => name !== ":path"),
  "two paths": [...get(), [":path", "/other"]],
  "a pseudo-field after the others": [...get().slice(0, 3), ["x", "a"], [":path", "/"]],
  "an unknown pseudo-field": [[":evil", "1"], ...get()],
  "a space in the method": replaced(":method", "GET / HTTP/1.1\r\nX: y\r\n\r\nGET"),
  "an unknown method": replaced(":method", "SMUGGLE"),
  "no method": get().filter(([name]) => name !== ":method"),
  "another scheme": replaced(":scheme", "file"),
  "no authority": get().filter(([name]) => name !== ":authority"),
  "an authority with a path": replaced(":authority", `${hostOf(3000)}/x`),
  "an authority with a user": replaced(":authority", `user@${hostOf(3000)}`),
  "an authority with a space": replaced(":authority", `${hostOf(3000)} x`),
  "another Host than the authority": [...get(), ["host", hostOf(3001)]],
  "two Hosts": [...get().filter(([name]) => name !== ":authority"), ["host", hostOf(3000)], ["host", hostOf(3001)]],
  Connection: [...get(), ["connection", "x-secret"]],
  "Keep-Alive": [...get(), ["keep-alive", "timeout=5"]],
  "Proxy-Connection": [...get(), ["proxy-connection", "close"]],
  Upgrade: [...get(), ["upgrade", "websocket"]],
  "Transfer-Encoding": [...POST, ["transfer-encoding", "chunked"]],
  "TE other than trailers": [...get(), ["te", "gzip"]],
  "a length without a body": [...POST, ["content-length", "5"]],
  "two lengths": [...POST, ["content-length", "0"], ["content-length", "5"]],
  "a list of lengths": [...POST, ["content-length", "0, 5"]],
  "a signed length": [...POST, ["content-length", "+0"]],
  "CONNECT to a host": [
    [":method", "CONNECT"],
    [":authority", "10.0.0.1:22"],
  ],
  "another protocol than WebSocket": [...replaced(":method", "CONNECT"), [":protocol", "connect-udp"]],
  "a protocol without CONNECT": [...get(), [":protocol", "websocket"]],
};

const DROPPED: ReadonlySet<string> = new Set([
  "CR and LF in a value",
  "LF in a value",
  "NUL in a value",
  "CR and LF in a name",
  "a colon in a name",
  "an empty name",
]);

test.each(Object.entries(MALFORMED))("refused, and nothing of it reaches a sandbox: %s", async (name, fields) => {
  await using tls = await createTlsWorld();
  const seen: string[] = [];
  for (const port of [3000, 3001]) {
    await tls.world.serve(port, (req, res) => {
      seen.push(`${req.method} ${req.url} ${req.rawHeaders.filter((_, at) => at % 2 === 0).join(" ")}`);
      res.end("ok");
    });
  }
  const client = await FrameClient.open(tls);
  client.send(FRAME.headers, { stream: 1, flags: END_HEADERS | END_STREAM, payload: block(fields) });
  // The next request on the connection, if it still exists, is served as itself.
  client.send(FRAME.headers, { stream: 3, flags: END_HEADERS | END_STREAM, payload: block(get("/next")) });
  const answered = () => client.frames.some(({ type, stream }) => stream === 3 && type === FRAME.data);
  await waitFor(() => (answered() || client.socket.destroyed || client.socket.readableEnded ? true : undefined), "the next answer");
  // The library drops a field whose name or value has such characters. A request without it is as good as one that never had it.
  const allowed = ["GET /next Host Connection", ...(DROPPED.has(name) ? ["GET / Host Connection"] : [])];
  expect(seen.filter((one) => !allowed.includes(one))).toEqual([]);
  client.socket.destroy();
});

test.each([
  ["more", "5", "abcdefGET /smuggled HTTP/1.1\r\n\r\n"],
  ["less", "50", "abcdef"],
])("a body with %s bytes than its length is refused, and never looks whole", async (_name, length, body) => {
  await using tls = await createTlsWorld();
  const seen: string[] = [];
  await tls.world.serve(3000, (req) => {
    seen.push(req.url ?? "");
    req.on("error", () => {}).on("end", () => seen.push("whole"));
    req.resume();
  });
  const client = await FrameClient.open(tls);
  client.send(FRAME.headers, { stream: 1, flags: END_HEADERS, payload: block([...POST, ["content-length", length]]) });
  client.send(FRAME.data, { stream: 1, flags: END_STREAM, payload: Buffer.from(body) });
  const isRefused = () => client.goaway !== undefined || client.frames.some(({ type, stream }) => type === FRAME.reset && stream === 1);
  await waitFor(() => (isRefused() ? true : undefined), "a refusal");
  await waitFor(() => (tls.world.sandboxes.sockets.size === 0 ? true : undefined), "the sandbox's connection to close");
  expect(seen.filter((one) => one !== "/")).toEqual([]);
  client.socket.destroy();
});

/** The edge serves other clients, and no error has escaped. */
async function expectWell(tls: TlsWorld, faults: Faults): Promise<void> {
  using client = await Http2Client.open(tls);
  expect((await client.fetch({ ":path": "/well" })).headers[":status"]).toBe(200);
  expect((await tls.fetch(3000)).status).toBe(200);
  expect(faults.seen).toEqual([]);
}

const reset = (code: number) => {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(code);
  return payload;
};

const setting = (id: number, value: number) => {
  const payload = Buffer.alloc(6);
  payload.writeUInt16BE(id, 0);
  payload.writeUInt32BE(value, 2);
  return payload;
};

/** Each sends until the connection ends, which must come before so many frames. */
const FLOODS: Record<string, { most: number; send: (client: FrameClient, turn: number) => void }> = {
  "resets at once after requests": {
    most: 20_000,
    send(client, turn) {
      const stream = 1 + 2 * turn;
      client.send(FRAME.headers, { stream, flags: END_HEADERS | END_STREAM, payload: block(get("/reset")) });
      client.send(FRAME.reset, { stream, payload: reset(constants.NGHTTP2_CANCEL) });
    },
  },
  "PING frames": { most: 2_000, send: (client) => client.send(FRAME.ping, { payload: Buffer.alloc(8) }) },
  "SETTINGS frames": { most: 2_000, send: (client) => client.send(FRAME.settings, { payload: setting(4, 65_535) }) },
  "CONTINUATION frames without an end": {
    most: 2_000,
    send(client, turn) {
      if (turn === 0) client.send(FRAME.headers, { stream: 1, payload: block(get()) });
      else client.send(FRAME.continuation, { stream: 1, payload: block([["x", "a".repeat(1_000)]]) });
    },
  },
  "empty CONTINUATION frames": {
    most: 2_000,
    send(client, turn) {
      if (turn === 0) client.send(FRAME.headers, { stream: 1, payload: block(get()) });
      else client.send(FRAME.continuation, { stream: 1 });
    },
  },
  "empty DATA frames": {
    most: 2_000,
    send(client, turn) {
      if (turn === 0) client.send(FRAME.headers, { stream: 1, flags: END_HEADERS, payload: block(POST) });
      else client.send(FRAME.data, { stream: 1 });
    },
  },
};

test.each(Object.entries(FLOODS))("ends the connection, and no other: a flood of %s", async (_name, { most, send }) => {
  using faults = new Faults();
  await using tls = await createTlsWorld();
  await tls.world.serve(3000, (req, res) =>
    req
      .on("error", () => {})
      .resume()
      .on("end", () => res.end("ok")),
  );
  const client = await FrameClient.open(tls);
  let turn = 0;
  const isOver = () => client.socket.destroyed || client.socket.readableEnded || client.goaway !== undefined;
  while (!isOver() && turn < most) {
    for (let n = 0; n < 50; n++) send(client, turn++);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await waitFor(() => (isOver() ? true : undefined), "the end of the connection");
  client.socket.destroy();
  await expectWell(tls, faults);
  await waitFor(() => (tls.world.sandboxes.sockets.size === 0 ? true : undefined), "the sandbox's connections to close");
});

test("fields over the limits are refused, many small ones as well", async () => {
  using faults = new Faults();
  await using tls = await createTlsWorld();
  const seen: string[] = [];
  await tls.world.serve(3000, (req, res) => {
    seen.push(req.url ?? "");
    res.end("ok");
  });
  const client = await FrameClient.open(tls);
  const large: Fields = Array.from({ length: 5 }, (_, at) => [`x-${at}`, "a".repeat(15_000)]);
  const parts = [...get("/large"), ...large].map((field) => block([field]));
  client.send(FRAME.headers, { stream: 1, flags: END_STREAM, payload: parts[0] ?? Buffer.alloc(0) });
  for (const [at, payload] of parts.slice(1).entries()) {
    client.send(FRAME.continuation, { stream: 1, flags: at === parts.length - 2 ? END_HEADERS : 0, payload });
  }
  const many: Fields = Array.from({ length: 2_000 }, () => ["x", ""]);
  client.send(FRAME.headers, { stream: 3, flags: END_HEADERS | END_STREAM, payload: block([...get("/many"), ...many]) });
  // This client does not confirm the edge's settings. So the edge itself answers the first request, and the library resets the second.
  const isOver = () => client.goaway !== undefined || client.frames.some(({ stream, type }) => stream === 3 && type === FRAME.reset);
  await waitFor(() => (isOver() ? true : undefined), "a refusal");
  client.socket.destroy();
  await expectWell(tls, faults);
  expect(seen.filter((url) => url === "/large" || url === "/many")).toEqual([]);
});

test("more requests at a time than a connection may have are refused, and the client may repeat them", async () => {
  await using tls = await createTlsWorld();
  await tls.world.serve(3000, (_req, res) => res.write("busy"));
  const client = await FrameClient.open(tls);
  for (let turn = 0; turn < 140; turn++) {
    client.send(FRAME.headers, { stream: 1 + 2 * turn, flags: END_HEADERS | END_STREAM, payload: block(get()) });
  }
  await waitFor(() => (client.frames.filter(({ type }) => type === FRAME.data).length >= 128 ? true : undefined), "128 answers");
  expect(tls.world.sandboxes.sockets.size).toBe(128);
  const code = await client.untilReset(1 + 2 * 139);
  expect(code).toBe(constants.NGHTTP2_REFUSED_STREAM);
  client.socket.destroy();
  await waitFor(() => (tls.world.sandboxes.sockets.size === 0 ? true : undefined), "the sandbox's connections to close");
});

test("streams count towards the edge's connections, and those of a sandbox towards its limit", async () => {
  await using tls = await createTlsWorld({ maxConnections: 6, maxSandboxConnections: 3 });
  await tls.world.serve(3000, (req, res) => (req.url === "/well" ? res.end("ok") : res.write("busy")));
  const client = await FrameClient.open(tls);
  const ask = (stream: number) => client.send(FRAME.headers, { stream, flags: END_HEADERS | END_STREAM, payload: block(get()) });
  for (const stream of [1, 3, 5]) ask(stream);
  await waitFor(() => (client.frames.filter(({ type }) => type === FRAME.data).length === 3 ? true : undefined), "three answers");
  ask(7);
  await waitFor(
    () => client.frames.find(({ type, stream, flags }) => type === FRAME.data && stream === 7 && (flags & END_STREAM) !== 0),
    "a 429",
  );
  const refusal = client.frames.find(({ type, stream }) => type === FRAME.data && stream === 7);
  expect(JSON.parse(String(refusal?.payload))).toMatchObject({ code: 429, connectionLimit: 3 });
  const other = await FrameClient.open(tls);
  other.send(FRAME.headers, { stream: 1, flags: END_HEADERS | END_STREAM, payload: block(get("/", 3001)) });
  await waitFor(() => other.frames.find(({ type }) => type === FRAME.data), "an answer");
  for (const { socket } of [client, other]) socket.destroy();
  await waitFor(() => (tls.world.sandboxes.sockets.size === 0 ? true : undefined), "the sandbox's connections to close");
});

test("clients that give no window hold back their own servers only, and take bounded memory", async () => {
  using faults = new Faults();
  await using tls = await createTlsWorld();
  let sent = 0;
  await tls.world.serve(3000, (req, res) => {
    if (req.url !== "/endless") return res.end("ok");
    const pour = () => {
      sent += 64 * 1024;
      if (!res.destroyed) res.write(Buffer.alloc(64 * 1024));
    };
    res.on("error", () => {}).on("drain", pour);
    return pour();
  });
  const client = await FrameClient.open(tls, setting(4, 0));
  const streams = 8;
  for (let turn = 0; turn < streams; turn++) {
    client.send(FRAME.headers, { stream: 1 + 2 * turn, flags: END_HEADERS | END_STREAM, payload: block(get("/endless")) });
  }
  await waitFor(() => (client.frames.filter(({ type }) => type === FRAME.headers).length === streams ? true : undefined), "the heads");
  const still = async () => {
    const before = sent;
    await new Promise((resolve) => setTimeout(resolve, 300));
    return before > 0 && before === sent;
  };
  await expect.poll(still, { timeout: 30_000 }).toBe(true);
  // The kernel's buffers of the loopback connections take most of it.
  expect(sent).toBeLessThan(streams * 10_000_000);
  expect(client.frames.filter(({ type }) => type === FRAME.data)).toEqual([]);
  await expectWell(tls, faults);
  client.socket.destroy();
  await waitFor(() => (tls.world.sandboxes.sockets.size === 0 ? true : undefined), "the sandbox's connections to close");
});

test("a connection without a first request ends early, also one whose head never ends; reserved paths stay closed", async () => {
  await using tls = await createTlsWorld({ firstRequestTimeoutMs: 1_000 });
  await tls.world.serve(3000, (_req, res) => res.end("ok"));
  const silent = await FrameClient.open(tls);
  const slow = await FrameClient.open(tls);
  slow.send(FRAME.headers, { stream: 1, payload: block(get()) });
  await Promise.all([silent.untilClosed(), slow.untilClosed()]);
  using client = await Http2Client.open(tls);
  for (const path of ["/init", "/%69nit", "//init", "/x/../init"]) {
    expect((await client.fetch({ ":authority": hostOf(49983, SANDBOX_ID), ":path": path })).headers[":status"]).toBe(404);
  }
});

test("rubbish instead of HTTP/2 ends the connection", async () => {
  using faults = new Faults();
  await using tls = await createTlsWorld();
  await tls.world.serve(3000, (_req, res) => res.end("ok"));
  const client = await tls.connect({ ALPNProtocols: ["h2"] });
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  await waitFor(() => (client.socket.destroyed || client.ended ? true : undefined), "the end");
  client.socket.destroy();
  await expectWell(tls, faults);
});
