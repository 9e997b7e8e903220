import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parsePort, parseTarget, type TargetHeaders } from "./host.ts";

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
