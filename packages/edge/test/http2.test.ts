import { createHash, randomBytes } from "node:crypto";
import type { ServerResponse } from "node:http";
import { constants } from "node:http2";
import type { Duplex } from "node:stream";
import { expect, test } from "vitest";
import { hostOf, waitFor } from "./client.ts";
import { Faults } from "./faults.ts";
import { answerOf, block, END_HEADERS, END_STREAM, FRAME, FrameClient, get, Http2Client } from "./http2-client.ts";
import { SANDBOX_ID } from "./parts.ts";
import { createTlsWorld } from "./tls-world.ts";

const sha256 = (data: Buffer) => createHash("sha256").update(data).digest("hex");

test("requests are mapped to HTTP/1.1 and answers back, with fields as they were and cookies in one", async () => {
  await using tls = await createTlsWorld();
  let seen: readonly string[] = [];
  await tls.world.serve(3000, (req, res) => {
    seen = req.rawHeaders;
    res.writeHead(201, "Fine", [
      "X-Answer",
      "1",
      "X-Answer",
      "2",
      "Set-Cookie",
      "a=1; Domain=skerry.test",
      "Set-Cookie",
      "b=2",
      "Keep-Alive",
      "x",
    ]);
    res.end(`${req.httpVersion} ${req.method} ${req.url}`);
  });
  using client = await Http2Client.open(tls);
  const { headers, body } = await client.fetch({ ":path": "/a?b=c", cookie: ["a=1", "b=2"], te: "trailers", "X-Forwarded-For": "6.6.6.6" });
  expect(body.toString()).toBe("1.1 GET /a?b=c");
  expect(headers).toMatchObject({ ":status": 201, "x-answer": "1, 2", "set-cookie": ["a=1", "b=2"] });
  for (const name of ["connection", "keep-alive", "transfer-encoding"]) expect(headers).not.toHaveProperty(name);
  expect(seen).toEqual(["Host", hostOf(3000), "cookie", "a=1; b=2", "TE", "trailers", "Connection", "close, TE"]);
});

test("a sandbox is reached by host name and by headers; refusals are JSON for programs and pages for people", async () => {
  await using tls = await createTlsWorld();
  await tls.world.serve(3000, (_req, res) => res.end("ok"));
  using client = await Http2Client.open(tls);
  const byHeaders = { ":authority": "skerry.test", "e2b-sandbox-id": SANDBOX_ID, "e2b-sandbox-port": "3000" };
  expect((await client.fetch(byHeaders)).body.toString()).toBe("ok");
  const closed = await client.fetch({ ":authority": hostOf(3999) });
  expect(closed.headers).toMatchObject({ ":status": 502, "content-type": "application/json; charset=utf-8" });
  expect(JSON.parse(closed.body.toString())).toMatchObject({ sandboxId: SANDBOX_ID, port: 3999, code: 502 });
  const page = await client.fetch({ ":authority": hostOf(3999), "user-agent": "Mozilla/5.0", accept: "text/html" });
  expect(page.headers["content-type"]).toBe("text/html; charset=utf-8");
  expect(page.body.toString()).toContain("Closed Port Error");
  expect((await client.fetch({ ":authority": "skerry.test" })).headers[":status"]).toBe(400);
  const reserved = await client.fetch({ ":authority": hostOf(49983), ":path": "/init", ":method": "POST" }, "{}");
  expect(reserved.headers[":status"]).toBe(404);
});

test("bodies of any size pass unchanged in both directions at once", async () => {
  await using tls = await createTlsWorld();
  const data = randomBytes(12_000_000);
  await tls.world.serve(3000, async (req, res) => {
    if (req.method === "GET") return res.writeHead(200, { "content-length": data.length }).end(data);
    const hash = createHash("sha256");
    for await (const chunk of req) hash.update(chunk as Buffer);
    return res.end(`${req.headers["content-length"]} ${req.headers["transfer-encoding"]} ${hash.digest("hex")}`);
  });
  using client = await Http2Client.open(tls);
  const [down, up, counted, head] = await Promise.all([
    client.fetch(),
    client.fetch({ ":method": "PUT" }, data),
    client.fetch({ ":method": "PUT", "content-length": data.length }, data),
    client.fetch({ ":method": "HEAD" }),
  ]);
  expect(sha256(down.body)).toBe(sha256(data));
  expect(up.body.toString()).toBe(`undefined chunked ${sha256(data)}`);
  expect(counted.body.toString()).toBe(`${data.length} undefined ${sha256(data)}`);
  expect(head.body.length).toBe(0);
});

test("a server that does not read stops the client, and a client that does not read stops the server", async () => {
  await using tls = await createTlsWorld();
  let sent = 0;
  let asked: (() => void) | undefined;
  await tls.world.serve(3000, (req, res) => {
    if (req.method === "PUT") {
      req.once("error", () => {});
      asked = () => req.resume().on("end", () => res.end("read"));
      return;
    }
    const pour = () => {
      sent += 64 * 1024;
      if (!res.destroyed) res.write(Buffer.alloc(64 * 1024));
    };
    res.on("drain", pour);
    pour();
  });
  using client = await Http2Client.open(tls);
  const upload = client.request({ ":method": "PUT" }, { endStream: false });
  let taken = 0;
  const write = () =>
    upload.write(Buffer.alloc(64 * 1024), () => {
      taken += 64 * 1024;
      if (taken < 64_000_000) write();
      else upload.end();
    });
  write();
  const download = client.request();
  download.pause();
  await waitFor(() => asked, "the upload");
  // Both stand still: the figures stay the same from one look to the next.
  const still = async () => {
    const before = [taken, sent];
    await new Promise((resolve) => setTimeout(resolve, 300));
    return before.every((value, at) => value > 0 && value === [taken, sent][at]);
  };
  await expect.poll(still, { timeout: 30_000 }).toBe(true);
  expect(taken).toBeLessThan(20_000_000);
  expect(sent).toBeLessThan(40_000_000);
  expect((await Promise.all([client.fetch({ ":authority": hostOf(3999) })]))[0].headers[":status"]).toBe(502);
  asked?.();
  expect((await answerOf(upload)).body.toString()).toBe("read");
  download.close(constants.NGHTTP2_CANCEL);
});

test("a stream of events comes at once, may be silent for longer than a connection may idle, and has its trailers", async () => {
  await using tls = await createTlsWorld({ idleTimeoutMs: 20, firstRequestTimeoutMs: 30_000 });
  let stream: ServerResponse | undefined;
  await tls.world.serve(3000, (_req, res) => {
    stream = res.writeHead(200, { "content-type": "text/event-stream", trailer: "x-sum" });
    res.write("data: 1\n\n");
  });
  using idle = await Http2Client.open(tls);
  await idle.fetch({ ":authority": hostOf(3999) });
  using client = await Http2Client.open(tls);
  const events = client.request();
  let text = "";
  events.on("data", (chunk: Buffer) => {
    text += chunk;
  });
  const answer = answerOf(events);
  await waitFor(() => (text === "data: 1\n\n" ? true : undefined), "the first event");
  await waitFor(() => (idle.session.closed ? true : undefined), "the end of the idle connection");
  stream?.write("data: 2\n\n");
  await waitFor(() => (text.endsWith("data: 2\n\n") ? true : undefined), "the second event");
  stream?.addTrailers({ "x-sum": "2" });
  stream?.end();
  expect((await answer).trailers).toMatchObject({ "x-sum": "2" });
});

test("trailers and 100 Continue reach the server and the client", async () => {
  await using tls = await createTlsWorld();
  const server = await tls.world.serve(3000, () => {});
  server.on("checkContinue", async (req, res) => {
    res.writeContinue();
    let text = "";
    for await (const chunk of req) text += chunk;
    res.end(`${text} ${JSON.stringify(req.trailers)}`);
  });
  using client = await Http2Client.open(tls);
  const headers = { ":method": "POST", ":authority": hostOf(3000), ":scheme": "https", expect: "100-continue" };
  const stream = client.session.request(headers, { endStream: false, waitForTrailers: true });
  stream.once("wantTrailers", () => stream.sendTrailers({ "x-sum": "7", host: "evil", "e2b-traffic-access-token": "t" }));
  const answer = answerOf(stream);
  await new Promise((resolve) => stream.once("continue", () => resolve(undefined)));
  stream.end("body");
  expect((await answer).body.toString()).toBe('body {"x-sum":"7"}');
});

test("a sandbox that dies during its answer resets that stream, and the others go on", async () => {
  using faults = new Faults();
  await using tls = await createTlsWorld();
  let dying: ServerResponse | undefined;
  await tls.world.serve(3000, (req, res) => {
    if (req.url !== "/dies") return res.end("ok");
    dying = res;
    return res.writeHead(200, { "content-length": 100 }).write("the beginning");
  });
  using client = await Http2Client.open(tls);
  const stream = client.request({ ":path": "/dies" });
  const answer = answerOf(stream);
  await new Promise((resolve) => stream.once("data", resolve));
  dying?.socket?.resetAndDestroy();
  await expect(answer).rejects.toThrow();
  expect(stream.rstCode).toBe(constants.NGHTTP2_INTERNAL_ERROR);
  expect((await client.fetch()).body.toString()).toBe("ok");
  tls.world.sandboxes.kill(SANDBOX_ID);
  const { headers, body } = await client.fetch();
  expect([headers[":status"], JSON.parse(body.toString()).message]).toEqual([502, "The sandbox was not found"]);
  expect(faults.seen).toEqual([]);
});

test.each([
  ["cancelled", constants.NGHTTP2_CANCEL],
  ["closed without an error", constants.NGHTTP2_NO_ERROR],
])("a request that is %s closes the sandbox's connection, and its body never looks whole", async (_name, code) => {
  await using tls = await createTlsWorld();
  const ends: string[] = [];
  await tls.world.serve(3000, (req) => {
    req.once("data", () => ends.push("begun"));
    req.once("end", () => ends.push("whole"));
    req.once("error", () => ends.push("broken"));
    req.socket.once("close", () => ends.push("closed"));
  });
  const client = await FrameClient.open(tls);
  const post = get().map(([name, value]): [string, string] => [name, name === ":method" ? "POST" : value]);
  client.send(FRAME.headers, { stream: 1, flags: END_HEADERS, payload: block(post) });
  client.send(FRAME.data, { stream: 1, payload: Buffer.from("part") });
  await waitFor(() => (ends.includes("begun") ? true : undefined), "the body");
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(code);
  client.send(FRAME.reset, { stream: 1, payload });
  await waitFor(() => (ends.includes("closed") ? true : undefined), "the end");
  expect(ends).not.toContain("whole");
  expect(tls.world.sandboxes.sockets.size).toBe(0);
  client.socket.destroy();
});

test("an answer before the end of the request is whole, and stops the rest of the body", async () => {
  await using tls = await createTlsWorld();
  const data = randomBytes(3_000_000);
  await tls.world.serve(3000, (_req, res) => res.writeHead(413, { "content-length": data.length }).end(data));
  using client = await Http2Client.open(tls);
  const stream = client.request({ ":method": "POST" }, { endStream: false });
  stream.write("the beginning");
  const answer = await answerOf(stream);
  expect([answer.headers[":status"], sha256(answer.body)]).toEqual([413, sha256(data)]);
  await waitFor(() => (tls.world.sandboxes.sockets.size === 0 ? true : undefined), "the sandbox's connection to close");
});

test("an answer without a length that breaks off has no end, only a reset", async () => {
  await using tls = await createTlsWorld();
  await tls.world.serve(3000, (_req, res) => res.write("the beginning"));
  const client = await FrameClient.open(tls);
  client.send(FRAME.headers, { stream: 1, flags: END_HEADERS | END_STREAM, payload: block(get()) });
  await waitFor(() => client.frames.find(({ type }) => type === FRAME.data), "the beginning");
  tls.world.sandboxes.kill(SANDBOX_ID);
  expect(await client.untilReset(1)).toBe(constants.NGHTTP2_INTERNAL_ERROR);
  expect(client.frames.filter(({ type, flags }) => type === FRAME.data && (flags & END_STREAM) !== 0)).toEqual([]);
  client.socket.destroy();
});

test("bytes after an answer, in the same packet, are no part of it and cost the client nothing", async () => {
  await using tls = await createTlsWorld();
  await tls.world.serveTcp(3000, (socket) => {
    socket.once("data", () =>
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"),
    );
  });
  using client = await Http2Client.open(tls);
  for (let turn = 0; turn < 3; turn++) expect((await client.fetch()).body.toString()).toBe("ok");
  await waitFor(() => (tls.world.sandboxes.sockets.size === 0 ? true : undefined), "the sandbox's connections to close");
});

test("a WebSocket takes one stream, carries bytes both ways, and its directions end one after the other", async () => {
  await using tls = await createTlsWorld();
  let seen: readonly string[] = [];
  const server = await tls.world.serve(3000, (_req, res) => res.writeHead(200).end("no WebSocket"));
  server.on("upgrade", (req, socket: Duplex) => {
    seen = req.rawHeaders;
    const accept = createHash("sha1").update(`${req.headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
    const key = req.url === "/wrong" ? "wrong" : accept;
    if (req.url === "/no") return socket.end("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${key}\r\nSec-WebSocket-Protocol: p\r\n\r\nhello`,
    );
    socket.on("error", () => {});
    socket.on("data", (chunk: Buffer) => socket.write(`echo ${chunk}`));
    return socket.on("end", () => socket.end("last words"));
  });
  using client = await Http2Client.open(tls);
  expect(client.session.remoteSettings.enableConnectProtocol).toBe(true);
  const open = (path: string) =>
    client.request(
      { ":method": "CONNECT", ":protocol": "websocket", ":path": path, "sec-websocket-version": "13", "sec-websocket-key": "mine" },
      { endStream: false },
    );
  const socket = open("/chat");
  let text = "";
  socket.on("data", (chunk: Buffer) => {
    text += chunk;
  });
  const answer = answerOf(socket);
  await waitFor(() => (text === "hello" ? true : undefined), "the greeting");
  socket.write("one");
  await waitFor(() => (text === "helloecho one" ? true : undefined), "the echo");
  socket.end();
  const { headers } = await answer;
  expect(headers).toMatchObject({ ":status": 200, "sec-websocket-protocol": "p" });
  expect(text).toBe("helloecho onelast words");
  expect(seen.join(" ")).toMatch(/^Host \S+ sec-websocket-version 13 Sec-WebSocket-Key \S+ Upgrade websocket Connection Upgrade$/i);
  expect(seen).not.toContain("mine");
  const refused = await answerOf(open("/no"));
  expect([refused.headers[":status"], refused.body.toString()]).toEqual([403, "no"]);
  expect((await answerOf(open("/wrong"))).headers[":status"]).toBe(502);
  const dying = open("/dies");
  dying.resume();
  await new Promise((resolve) => dying.once("response", resolve));
  tls.world.sandboxes.kill(SANDBOX_ID);
  await expect(answerOf(dying)).rejects.toThrow();
});

test("no frame of an answer is empty without being the last, and an answer of known length has none at all", async () => {
  await using tls = await createTlsWorld();
  await tls.world.serve(3000, (req, res) => {
    if (req.url === "/known") return res.writeHead(200, { "content-length": 5 }).end("known");
    res.write("a");
    return setTimeout(() => res.end("b"), 20);
  });
  const client = await FrameClient.open(tls);
  client.send(FRAME.headers, { stream: 1, flags: END_HEADERS | END_STREAM, payload: block(get("/known")) });
  client.send(FRAME.headers, { stream: 3, flags: END_HEADERS | END_STREAM, payload: block(get("/chunked")) });
  const ended = (stream: number) => client.frames.some((one) => one.stream === stream && (one.flags & END_STREAM) !== 0);
  await waitFor(() => (ended(1) && ended(3) ? true : undefined), "both answers");
  const data = client.frames.filter(({ type }) => type === FRAME.data);
  expect(data.filter(({ stream, payload }) => stream === 1 && payload.length === 0)).toEqual([]);
  expect(data.filter(({ flags, payload }) => payload.length === 0 && (flags & END_STREAM) === 0)).toEqual([]);
  client.socket.destroy();
});
