import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { hostNameOf, parsePathTarget, parsePort, parseTarget, type TargetHeaders } from "./host.ts";

const NONE: TargetHeaders = { sandboxId: undefined, port: undefined };
const ID = "iabcdefghijklmnopqrst";

function target(sandboxId: string, port: number): object {
  return { kind: "target", target: { sandboxId, port } };
}

function invalid(message: string): object {
  return { kind: "invalid", message };
}

function unnamed(message: string): object {
  return { kind: "unnamed", message };
}

describe("the host form", () => {
  test.each([
    [`49983-${ID}.example.com`, target(ID, 49983)],
    [`49983-${ID}.example.com:3002`, target(ID, 49983)],
    [`8000-${ID}.localhost:3000`, target(ID, 8000)],
    [`8000-${ID.toUpperCase()}.Example.COM`, target(ID, 8000)],
    [`8000-${ID}-6532622b.example.com`, target(ID, 8000)],
    [`8000-${ID}-a-b.example.com`, target(ID, 8000)],
    [`1-a.b`, target("a", 1)],
    [`65535-a.b`, target("a", 65535)],
    [`0-${ID}.example.com`, invalid("Invalid sandbox port")],
    [`65536-${ID}.example.com`, invalid("Invalid sandbox port")],
    [`02280-${ID}.example.com`, invalid("Invalid sandbox port")],
    [`http-${ID}.example.com`, unnamed("Invalid sandbox port")],
    [`8000-a_b.example.com`, unnamed("Invalid sandbox ID")],
    [`8000-.example.com`, unnamed("Invalid sandbox ID")],
    [`-${ID}.example.com`, unnamed("Invalid sandbox port")],
    [`8000-${ID}`, unnamed("Invalid host")],
    ["example.com", unnamed("Invalid host")],
    ["localhost:4681", unnamed("Invalid host")],
    ["127.0.0.1:4681", unnamed("Invalid host")],
    ["[::1]:4681", unnamed("Invalid host")],
    ["", unnamed("Invalid host")],
    [undefined, unnamed("Invalid host")],
  ])("%s", (host, expected) => {
    expect(parseTarget(host, NONE)).toEqual(expected);
  });

  test("wins over the headers", () => {
    expect(parseTarget(`8000-${ID}.example.com`, { sandboxId: "other", port: "1" })).toEqual(target(ID, 8000));
    expect(parseTarget(`08000-${ID}.example.com`, { sandboxId: "other", port: "1" })).toEqual(invalid("Invalid sandbox port"));
  });
});

describe("the header form", () => {
  test.each(["localhost", "localhost:4681", "127.0.0.1", "[::1]:4681", "sandbox.example.com", "any-host.example.com", undefined])(
    "works on host %s",
    (host) => {
      expect(parseTarget(host, { sandboxId: ID, port: "49983" })).toEqual(target(ID, 49983));
      expect(parseTarget(host, { sandboxId: `${ID}-6532622b`, port: "49983" })).toEqual(target(ID, 49983));
    },
  );

  test.each<[string | undefined, string | undefined, string]>([
    [ID, undefined, "missing header"],
    [undefined, "49983", "missing header"],
    ["", "49983", "Invalid sandbox ID"],
    [ID.toUpperCase(), "49983", "Invalid sandbox ID"],
    [`${ID}, ${ID}`, "49983", "Invalid sandbox ID"],
    ["../etc", "49983", "Invalid sandbox ID"],
    [ID, "", "Invalid sandbox port"],
    [ID, "+80", "Invalid sandbox port"],
    [ID, "080", "Invalid sandbox port"],
    [ID, "8e3", "Invalid sandbox port"],
    [ID, "80, 80", "Invalid sandbox port"],
    [ID, "٨٠", "Invalid sandbox port"],
  ])("id %s and port %s", (sandboxId, port, message) => {
    expect(parseTarget("localhost", { sandboxId, port })).toEqual(invalid(message));
  });
});

describe("whatever is sent", () => {
  const header = fc.option(fc.oneof(fc.string(), fc.constant(ID), fc.nat(70_000).map(String)), { nil: undefined });
  const host = fc.option(
    fc.oneof(
      fc.string({ unit: "binary" }),
      fc
        .tuple(fc.oneof(fc.nat(70_000).map(String), fc.string()), fc.string(), fc.string())
        .map(([port, id, rest]) => `${port}-${id}.${rest}`),
    ),
    { nil: undefined },
  );

  test("a target has an id that is safe as a path and a port that exists; nothing throws", () => {
    fc.assert(
      fc.property(host, header, header, (name, sandboxId, port) => {
        const result = parseTarget(name, { sandboxId, port });
        if (result.kind !== "target") return;
        expect(result.target.sandboxId).toMatch(/^[a-z0-9]{1,64}$/);
        expect(Number.isInteger(result.target.port) && result.target.port >= 1 && result.target.port <= 65535).toBe(true);
      }),
      { numRuns: 3_000 },
    );
  });

  test("a port has one spelling", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.nat(99_999).map(String)), (text) => {
        const port = parsePort(text);
        if (port !== undefined) expect(String(port)).toBe(text);
      }),
      { numRuns: 3_000 },
    );
  });

  test("the two forms agree", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[a-z0-9]{1,30}$/), fc.integer({ min: 1, max: 65535 }), (id, port) => {
        expect(parseTarget(`${port}-${id}.example.com`, NONE)).toEqual(parseTarget("localhost", { sandboxId: id, port: String(port) }));
      }),
    );
  });
});

describe("the path form", () => {
  const at = (path: string, prefix = `/s/${ID}/3000`) => ({ ...target(ID, 3000), prefix, path });

  test.each([
    [`/s/${ID}/3000/`, at("/")],
    [`/s/${ID}/3000/a/b?c=/../d#e`, at("/a/b?c=/../d#e")],
    [`/s/${ID}/3000//evil.example/`, at("//evil.example/")],
    [`/s/${ID}/3000/a%2Fb/..c/d../.e/%252e%252e/%zz`, at("/a%2Fb/..c/d../.e/%252e%252e/%zz")],
    [`/s/${ID}/3000/s/other/80/`, at("/s/other/80/")],
    [`/s/${ID}/3000`, { kind: "unslashed", slashed: `/s/${ID}/3000/` }],
    [`/s/${ID}/3000?a=/b`, { kind: "unslashed", slashed: `/s/${ID}/3000/?a=/b` }],
  ])("%s", (path, expected) => {
    expect(parsePathTarget(path)).toEqual(expected);
  });

  test.each([
    "/",
    "*",
    "/s",
    "/s/",
    `/s/${ID}`,
    `/S/${ID}/3000/`,
    `//s/${ID}/3000/`,
    `/./s/${ID}/3000/`,
    `/x/../s/${ID}/3000/`,
    `/%73/${ID}/3000/`,
    `/s%2F${ID}/3000/`,
    `\\s\\${ID}\\3000\\`,
    `http://x/s/${ID}/3000/`,
  ])("%s leads nowhere", (path) => {
    expect(parsePathTarget(path)).toEqual(invalid("Sandboxes are at /s/{sandboxID}/{port}/ of this host"));
  });

  test.each([
    [`/s//3000/`, "Invalid sandbox ID"],
    [`/s/../3000/`, "Invalid sandbox ID"],
    [`/s/${ID.toUpperCase()}/3000/`, "Invalid sandbox ID"],
    [`/s/${ID}-6532622b/3000/`, "Invalid sandbox ID"],
    [`/s/%69${ID.slice(1)}/3000/`, "Invalid sandbox ID"],
    [`/s/${ID}//3000/`, "Invalid sandbox port"],
    [`/s/${ID}/03000/`, "Invalid sandbox port"],
    [`/s/${ID}/3000;x/`, "Invalid sandbox port"],
    [`/s/${ID}/%33000/`, "Invalid sandbox port"],
    [`/s/${ID}/65536/`, "Invalid sandbox port"],
    [`/s/${ID}/3000%2F/`, "Invalid sandbox port"],
    [`/s/${ID}/3000\\`, "Invalid path"],
    [`/s/${ID}/3000#/`, "Invalid path"],
    ...["..", ".", "a/..", "../../b/80/", "%2e%2E", ".%2e/x", "..%2fx", "x%5C..", "\\..\\", "..;a=b/", "a/%2e?x", "..#x", "#/../x"].map(
      (rest) => [`/s/${ID}/3000/${rest}`, "Invalid path"],
    ),
  ])("%s: %s", (path, message) => {
    expect(parsePathTarget(path)).toEqual(invalid(message));
  });

  test("whatever is sent: a URL of the same host that a browser resolves leads to the same sandbox and path", () => {
    const piece = fc.oneof(
      fc.constantFrom("s", ID, "3000", "80", "..", ".", "", "%2e", "%2E.", "%2f", "\\", ";", "?", "#", "%", "http:", "49983"),
      fc.string({ maxLength: 4 }),
    );
    const paths = fc.tuple(
      fc.constantFrom(`/s/${ID}/3000/`, "/s/", "/", "//", ""),
      fc.array(piece, { maxLength: 8 }),
      fc.constantFrom("/", ""),
    );
    fc.assert(
      fc.property(paths, ([start, pieces, glue]) => {
        const url = start + pieces.join(glue);
        const result = parsePathTarget(url);
        if (result.kind !== "target") return;
        const { sandboxId, port } = result.target;
        expect([sandboxId, result.prefix + result.path]).toEqual([expect.stringMatching(/^[a-z0-9]{1,64}$/), url]);
        expect(result.prefix).toBe(`/s/${sandboxId}/${port}`);
        const resolved = parsePathTarget(new URL(`http://x.example${url}`).pathname);
        expect(resolved).toMatchObject({ kind: "target", target: result.target });
      }),
      { numRuns: 5_000 },
    );
  });
});

test.each([
  ["Paths.Example.com", "paths.example.com"],
  ["paths.example.com.", "paths.example.com"],
  ["paths.example.com.:80", "paths.example.com"],
  ["127.0.0.1:4681", "127.0.0.1"],
  ["[::1]:4681", "[::1]"],
  ["[::1]", "[::1]"],
  ["", ""],
  [":80", ""],
])("the name in the host %s is %s", (host, name) => {
  expect(hostNameOf(host)).toBe(name);
});
