import { describe, expect, test } from "vitest";
import { FORWARDING, HOP_BY_HOP, requestHeaders, responseHeaders, trailerFields } from "./headers.ts";

const plain = { framing: "none", upgrade: false } as const;

describe("request fields", () => {
  test("keep their order, their case and their repetitions", () => {
    expect(requestHeaders(["Host", "h", "X-A", "1", "x-a", "2", "Cookie", "c"], plain)).toEqual([
      ...["Host", "h", "X-A", "1", "x-a", "2", "Cookie", "c"],
      ...["Connection", "close"],
    ]);
  });

  test.each([...HOP_BY_HOP.keys(), ...FORWARDING.keys()])("%s does not pass", (name) => {
    const out = requestHeaders([name.toUpperCase(), "x", "Host", "h"], plain);
    expect(out).toEqual(["Host", "h", "Connection", "close"]);
  });

  test("fields named by Connection do not pass, but routing, framing and credentials cannot be named away", () => {
    const raw = [
      "Connection",
      "X-A, content-length, host, X-Access-Token",
      "X-A",
      "1",
      "Host",
      "h",
      "Content-Length",
      "3",
      "X-Access-Token",
      "t",
    ];
    expect(requestHeaders(raw, { framing: "length", upgrade: false })).toEqual([
      ...["Host", "h", "Content-Length", "3", "X-Access-Token", "t"],
      ...["Connection", "close"],
    ]);
  });

  test("TE: trailers passes, other codings do not", () => {
    expect(requestHeaders(["TE", "gzip, trailers"], plain)).toEqual(["TE", "trailers", "Connection", "close, TE"]);
  });

  test("an upgrade keeps its protocol", () => {
    expect(requestHeaders(["Connection", "Upgrade", "Upgrade", "websocket"], { framing: "none", upgrade: true })).toEqual([
      ...["Upgrade", "websocket"],
      ...["Connection", "Upgrade"],
    ]);
  });
});

test("answers lose what belongs to the sandbox's connection", () => {
  const raw = [
    "Connection",
    "close, X-B",
    "Keep-Alive",
    "timeout=5",
    "X-B",
    "1",
    "Set-Cookie",
    "a",
    "Set-Cookie",
    "b",
    "Transfer-Encoding",
    "chunked",
  ];
  expect(responseHeaders(raw, "chunked")).toEqual(["Set-Cookie", "a", "Set-Cookie", "b", "Transfer-Encoding", "chunked"]);
});

test("trailers cannot bring in framing or routing", () => {
  expect(trailerFields(["X-Sum", "1", "Content-Length", "5", "Host", "x", "Transfer-Encoding", "chunked"])).toEqual([["X-Sum", "1"]]);
});
