import { createHash } from "node:crypto";
import { AGENT_PORT } from "@skerry/wire";
import fc from "fast-check";
import { expect, test } from "vitest";
import { tokenFault, trafficTokenIn } from "./traffic-token.ts";

const TOKEN = "0123456789abcdef".repeat(4);
const guarded = { tokenDigest: createHash("sha256").update(TOKEN).digest(), tlsPorts: new Set<number>() };
const target = (port: number) => ({ sandboxId: "iabc" as never, port });

test("every port but the agent's requires the token", () => {
  for (const port of [1, 80, 3000, AGENT_PORT - 1, AGENT_PORT + 1, 49_999, 65_535]) {
    expect(tokenFault(guarded, target(port), "")).toBe("missing");
    expect(tokenFault(guarded, target(port), `${TOKEN} `)).toBe("invalid");
    expect(tokenFault(guarded, target(port), TOKEN)).toBeUndefined();
  }
  expect(tokenFault(guarded, target(AGENT_PORT), "")).toBeUndefined();
});

test("a sandbox without a token requires none, and a digest of another length matches nothing", () => {
  expect(tokenFault(undefined, target(80), "")).toBeUndefined();
  expect(tokenFault({ tlsPorts: new Set() }, target(80), "")).toBeUndefined();
  for (const length of [0, 31, 33]) {
    expect(tokenFault({ ...guarded, tokenDigest: new Uint8Array(length) }, target(80), TOKEN)).toBe("invalid");
  }
});

test("no other text is accepted", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.constantFrom(TOKEN.toUpperCase(), TOKEN.slice(1), `${TOKEN}, ${TOKEN}`)), (text) => {
      expect(tokenFault(guarded, target(80), text)).toBe(text === "" ? "missing" : "invalid");
    }),
  );
});

test("repeated fields make one value", () => {
  expect(trafficTokenIn(["Host", "h"])).toBe("");
  expect(trafficTokenIn(["E2B-Traffic-Access-Token", "a"])).toBe("a");
  expect(trafficTokenIn(["e2b-traffic-access-token", "a", "E2B-TRAFFIC-ACCESS-TOKEN", "b"])).toBe("a, b");
});
