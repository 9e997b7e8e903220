import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { ingressOf, isPrivate } from "./ingress.ts";

const token = () => "token";
const none = { trafficTokenSha256: new Uint8Array(), hostTemplate: "", tlsPorts: [] };

test("only `false` makes a sandbox private", () => {
  expect(isPrivate({})).toBe(false);
  expect(isPrivate({ allowPublicTraffic: true })).toBe(false);
  expect(isPrivate({ allowPublicTraffic: false })).toBe(true);
});

test("requests to a sandbox without such options go to it as they are", () => {
  for (const options of [{}, { allowPublicTraffic: true }, { allowInternetAccess: false }]) {
    expect(ingressOf(options, token)).toBeUndefined();
  }
});

test("each option changes what it says, and the token itself is not told", () => {
  const trafficTokenSha256 = new Uint8Array(createHash("sha256").update("token").digest());
  expect(ingressOf({ allowPublicTraffic: false }, token)).toEqual({ ...none, trafficTokenSha256 });
  expect(ingressOf({ maskRequestHost: "localhost:${PORT}" }, token)).toEqual({ ...none, hostTemplate: "localhost:${PORT}" });
  expect(ingressOf({ httpsPorts: [443, 8443] }, token)).toEqual({ ...none, tlsPorts: [443, 8443] });
});
