import { expect, test } from "vitest";
import { streamHead as read } from "./stream-head.ts";

const GET = [":method", "GET", ":scheme", "https", ":authority", "3000-i.skerry.test", ":path", "/a?b"];
const POST = [":method", "POST", ...GET.slice(2)];

const streamHead = (raw: readonly string[], isWhole: boolean) => read(raw, { isWhole, maxHeaderBytes: 65_536 });

const headersOf = (raw: readonly string[], isWhole = true) => {
  const result = streamHead(raw, isWhole);
  return result.kind === "head" ? result.head.rawHeaders : result.refusal;
};

test("a request has one Host, and the framing of its body", () => {
  expect(streamHead(GET, true)).toEqual({
    kind: "head",
    head: { method: "GET", url: "/a?b", rawHeaders: ["Host", "3000-i.skerry.test"] },
  });
  expect(headersOf(POST, false)).toEqual(["Host", "3000-i.skerry.test", "transfer-encoding", "chunked"]);
  expect(headersOf([...POST, "content-length", "5"], false)).toEqual(["Host", "3000-i.skerry.test", "content-length", "5"]);
  expect(headersOf([...POST, "content-length", "0"])).toEqual(["Host", "3000-i.skerry.test"]);
  expect(headersOf([...GET, "host", "3000-I.skerry.test"])).toEqual(["Host", "3000-i.skerry.test"]);
  expect(headersOf([...GET.slice(0, 4), ...GET.slice(6), "host", "x.test"])).toEqual(["Host", "x.test"]);
});

test("fields keep their order and their duplicates, and cookies become one field", () => {
  const raw = [...GET, "x", "1", "cookie", "a=1", "x", "\t2\xff", "cookie", "b=2; c=3", "te", "Trailers"];
  expect(headersOf(raw)).toEqual(["Host", "3000-i.skerry.test", "x", "1", "x", "\t2\xff", "te", "Trailers", "cookie", "a=1; b=2; c=3"]);
});

test("a WebSocket becomes a handshake with a key of the edge", () => {
  const raw = [":method", "CONNECT", ":protocol", "websocket", ...GET.slice(2), "sec-websocket-key", "mine"];
  const result = streamHead(raw, false);
  if (result.kind === "refused") throw new Error("refused");
  const { method, rawHeaders, webSocketKey = "" } = result.head;
  expect(Buffer.from(webSocketKey, "base64")).toHaveLength(16);
  expect([method, ...rawHeaders]).toEqual([
    ...["GET", "Host", "3000-i.skerry.test", "Upgrade", "websocket", "Connection", "Upgrade"],
    ...["Sec-WebSocket-Key", webSocketKey],
  ]);
});

// The library refuses or drops most of these before. The edge doesn't rely on it.
test.each([
  ["x", "a\r\nEvil: b"],
  ["x", "a\nb"],
  ["x", "a\rb"],
  ["x", "a\0b"],
  ["x\r\nevil", "b"],
  ["x: y", "b"],
  ["X-Y", "b"],
  ["", "b"],
  ["\xe9", "b"],
  ["connection", "close"],
  ["keep-alive", "1"],
  ["proxy-connection", "close"],
  ["transfer-encoding", "chunked"],
  ["upgrade", "h2c"],
  ["te", "gzip"],
  ["host", "other.test"],
  [":path", "/second"],
  ["content-length", "5"],
  ["content-length", "-0"],
  ["content-length", "0x0"],
  ["content-length", ""],
])("refused: %j with the value %j", (name, value) => {
  expect(streamHead([...GET, name, value], true)).toMatchObject({ kind: "refused", refusal: { status: 400 } });
});

test.each([
  [":path", "a"],
  [":path", ""],
  [":path", "/ HTTP/1.1"],
  [":path", "/\r\nX: y"],
  [":path", "http://x/"],
  [":method", "get"],
  [":method", "GET /"],
  [":scheme", "ws"],
  [":authority", "a/b"],
  [":authority", "a@b"],
  [":authority", "a b"],
  [":authority", ""],
])("refused: %s as %j", (name, value) => {
  const raw = GET.with(GET.indexOf(name) + 1, value);
  expect(streamHead(raw, true)).toMatchObject({ kind: "refused", refusal: { status: 400 } });
});

test("two lengths are refused even if they are equal", () => {
  expect(streamHead([...POST, "content-length", "5", "content-length", "5"], false)).toMatchObject({ kind: "refused" });
});

test("fields over the limit are a 431, whatever their number", () => {
  expect(read([...GET, "x", "a".repeat(100)], { isWhole: true, maxHeaderBytes: 300 })).toMatchObject({ refusal: { status: 431 } });
  const many = Array.from({ length: 20 }, () => ["x", ""]).flat();
  expect(read([...GET, ...many], { isWhole: true, maxHeaderBytes: 800 })).toMatchObject({ refusal: { status: 431 } });
  expect(read([...GET, ...many], { isWhole: true, maxHeaderBytes: 900 })).toMatchObject({ kind: "head" });
});
