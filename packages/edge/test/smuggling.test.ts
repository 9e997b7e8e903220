import { expect, test } from "vitest";
import { hostOf, RawClient } from "./client.ts";
import { createWorld } from "./parts.ts";

const host = `Host: ${hostOf(3000)}\r\n`;

const MALFORMED: Record<string, string> = {
  "length and coding together": `POST / HTTP/1.1\r\n${host}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  "two different lengths": `POST / HTTP/1.1\r\n${host}Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef`,
  "the same length twice": `POST / HTTP/1.1\r\n${host}Content-Length: 5\r\nContent-Length: 5\r\n\r\nabcde`,
  "a list of lengths": `POST / HTTP/1.1\r\n${host}Content-Length: 5, 5\r\n\r\nabcde`,
  "a signed length": `POST / HTTP/1.1\r\n${host}Content-Length: +5\r\n\r\nabcde`,
  "chunked not last": `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n`,
  "a misspelt coding": `POST / HTTP/1.1\r\n${host}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`,
  "a coding after white space": `POST / HTTP/1.1\r\n${host}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n`,
  "bare LF between fields": `GET / HTTP/1.1\n${host.trim()}\n\n`,
  "bare CR in a field": `GET / HTTP/1.1\r\n${host}X: a\rEvil: b\r\n\r\n`,
  "a folded field": `GET / HTTP/1.1\r\n${host}X: a\r\n b\r\n\r\n`,
  "NUL in a field": `GET / HTTP/1.1\r\n${host}X: a\0b\r\n\r\n`,
  "no Host": "GET / HTTP/1.1\r\n\r\n",
  "two Hosts": `GET / HTTP/1.1\r\n${host}Host: ${hostOf(3001)}\r\n\r\n`,
  "another host in the request line": `GET http://${hostOf(3001)}/ HTTP/1.1\r\n${host}\r\n`,
  "a broken chunk size": `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n`,
  "a chunk longer than said": `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n`,
  "a chunk extension with a bare LF": `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n1;x\na\r\n0\r\n\r\n`,
  "HTTP/2 preface": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
  rubbish: "\x16\x03\x01\x02\x00\r\n\r\n",
};

test.each(Object.entries(MALFORMED))("refused, and nothing after it is read as a request: %s", async (_name, head) => {
  await using world = await createWorld("direct");
  const seen: string[] = [];
  await world.serve(3000, (req, res) => {
    seen.push(req.url ?? "");
    req.resume().on("end", () => res.end("answered"));
  });
  const client = new RawClient(world.port).send(`${head}GET /smuggled HTTP/1.1\r\n${host}Connection: close\r\n\r\n`);
  const answer = await client.untilClosed();
  expect(answer).toMatch(/^(HTTP\/1\.1 (400|501) |$)/);
  expect(answer).not.toContain("answered");
  expect(seen).not.toContain("/smuggled");
});

test("an unknown transfer coding is refused and its body is not taken for a request", async () => {
  await using world = await createWorld("direct");
  const client = new RawClient(world.port).send(
    `POST / HTTP/1.1\r\n${host}Transfer-Encoding: gzip, chunked\r\nConnection: close\r\n\r\n0\r\n\r\n`,
  );
  expect(await client.untilClosed()).toMatch(/^HTTP\/1\.1 501 /);
});

test("a full URL in the request line is taken when it names the same host", async () => {
  await using world = await createWorld("direct");
  await world.serve(3000, (req, res) => res.end(`url ${req.url}`));
  const client = new RawClient(world.port).send(`GET http://${hostOf(3000)}/a?b HTTP/1.1\r\n${host}Connection: close\r\n\r\n`);
  expect(await client.untilClosed()).toContain("url /a?b");
});

test("fields over the limit are a 431", async () => {
  await using world = await createWorld("direct");
  await world.serve(3000, (req, res) => res.end(String(req.rawHeaders.length)));
  const big = new RawClient(world.port).send(`GET / HTTP/1.1\r\n${host}X: ${"a".repeat(70_000)}\r\n\r\n`);
  expect(await big.untilClosed()).toMatch(/^HTTP\/1\.1 431 /);
  const many = "X-Field: 1\r\n".repeat(4_500);
  const client = new RawClient(world.port).send(`GET / HTTP/1.1\r\n${host}${many}Connection: close\r\n\r\n`);
  await client.untilClosed();
  expect(client.received).toMatch(/^HTTP\/1\.1 (200|431) /);
});

test("bytes after a sandbox's answer never reach the next request on the client's connection", async () => {
  await using world = await createWorld("direct");
  await world.serveTcp(3000, (socket) => {
    socket.once("data", () =>
      socket.end("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"),
    );
  });
  await world.serve(3001, (_req, res) => res.end("honest"));
  const client = new RawClient(world.port).send(`GET / HTTP/1.1\r\n${host}\r\n`);
  await client.until("ok");
  client.send(`GET / HTTP/1.1\r\nHost: ${hostOf(3001)}\r\nConnection: close\r\n\r\n`);
  const text = await client.untilClosed();
  expect(text).not.toContain("forged");
  expect(text).toContain("honest");
});

test("CONNECT is refused", async () => {
  await using world = await createWorld("direct");
  const client = new RawClient(world.port).send("CONNECT 10.0.0.1:22 HTTP/1.1\r\nHost: 10.0.0.1:22\r\n\r\n");
  expect(await client.untilClosed()).toMatch(/^HTTP\/1\.1 405 /);
});
