import { describe, expect, test } from "vitest";
import { FORWARDING, HOP_BY_HOP, requestHeaders, responseHeaders, trailerFields, upgradeResponseHeaders } from "./headers.ts";

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

  test("the traffic token does not pass", () => {
    expect(requestHeaders(["E2B-Traffic-Access-Token", "t", "Host", "h"], plain)).toEqual(["Host", "h", "Connection", "close"]);
  });

  test("a masked Host replaces the client's, which the server sees as X-Forwarded-Host; clients cannot forge either", () => {
    const raw = ["X-Forwarded-Host", "evil", "Host", "80-i.test", "Connection", "host, x-forwarded-host", "X-A", "1"];
    expect(requestHeaders(raw, { ...plain, maskedHost: "localhost:80" })).toEqual([
      ...["Host", "localhost:80", "X-A", "1", "X-Forwarded-Host", "80-i.test"],
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

test.each([
  ["a=b; Domain=example.com", "a=b"],
  ["a=b;domain=.example.com;Path=/", "a=b;Path=/"],
  ["a=b; DOMAIN = x; Secure; domain", "a=b; Secure"],
  ["a=b;\tDomain=x", "a=b"],
  ["a=b; Path=/; HttpOnly; Expires=Wed, 21 Oct 2026 07:28:00 GMT", "a=b; Path=/; HttpOnly; Expires=Wed, 21 Oct 2026 07:28:00 GMT"],
  ["domain=x; Path=/", "domain=x; Path=/"],
  ["a=domain=x; XDomain=y", "a=domain=x; XDomain=y"],
  ["", ""],
])("a cookie is only for the host that sets it: %j", (cookie, forwarded) => {
  expect(responseHeaders(["set-cookie", cookie, "X", "; Domain=x"], "none")).toEqual(["set-cookie", forwarded, "X", "; Domain=x"]);
  expect(upgradeResponseHeaders(["Set-Cookie", cookie])).toEqual(["Connection", "Upgrade", "Set-Cookie", forwarded]);
});

test("trailers cannot bring in credentials or cookies", () => {
  expect(trailerFields(["E2b-Traffic-Access-Token", "t", "Set-Cookie", "a=b; Domain=x", "X-Sum", "1"])).toEqual([["X-Sum", "1"]]);
});

test("trailers cannot bring in framing or routing", () => {
  expect(trailerFields(["X-Sum", "1", "Content-Length", "5", "Host", "x", "Transfer-Encoding", "chunked"])).toEqual([["X-Sum", "1"]]);
});
