import { describe, expect, it } from "vitest";
import { parseInit } from "./init-request.ts";

describe("parseInit", () => {
  it("takes an empty body for one that sets nothing", () => {
    expect(parseInit("")).toEqual({ unsupported: [] });
  });

  it.each([
    "[]",
    "null",
    "{",
    '{"accessToken":""}',
    '{"accessToken":"a\\\\b"}',
    '{"accessToken":1}',
    '{"envVars":{"A":1}}',
    '{"envVars":[]}',
    '{"timestamp":"yesterday"}',
    '{"memoryMB":"512"}',
    '{"memoryMB":0}',
    '{"caBundle":[]}',
  ])("refuses %s", (text) => {
    expect(parseInit(text)).toBeUndefined();
  });

  it("keeps nanoseconds and zones of the time", () => {
    expect(parseInit('{"timestamp":"2026-01-02T03:04:05.123456789+01:00"}')?.timestamp).toBe(
      BigInt(Date.UTC(2026, 0, 2, 2, 4, 5)) * 1_000_000n + 123_456_789n,
    );
  });

  it("names what it cannot do", () => {
    expect(parseInit('{"hyperloopIP":"x","volumeMounts":[]}')?.unsupported).toEqual(["hyperloopIP"]);
  });
});
