import { describe, expect, it } from "vitest";
import { negotiateEncoding } from "./accept-encoding.ts";

describe("negotiateEncoding", () => {
  it.each([
    [undefined, "identity"],
    ["", "identity"],
    ["deflate, gzip, br", "gzip"],
    ["br;q=1.0, gzip;q=0.5", "gzip"],
    ["gzip;q=0.5, identity;q=1.0", "identity"],
    ["identity, gzip", "identity"],
    ["gzip, identity", "gzip"],
    ["GZIP", "gzip"],
    ["gzip;q=nonsense", "gzip"],
    ["*", "identity"],
    ["*, identity;q=0", "gzip"],
    ["br", "identity"],
    ["gzip;q=0, br", "identity"],
    ["*;q=0, identity", "identity"],
  ])("answers %j with %s", (header, expected) => {
    expect(negotiateEncoding(header)).toBe(expected);
  });

  it.each(["br, identity;q=0", "*;q=0"])("refuses %j", (header) => {
    expect(() => negotiateEncoding(header)).toThrow("no acceptable encoding found, supported: [gzip]");
  });

  it("gives conditional requests the file's own bytes", () => {
    expect(negotiateEncoding("gzip", { isConditional: true })).toBe("identity");
  });

  it.each([
    ["gzip, deflate", "identity"],
    ["gzip", "identity"],
    ["gzip, identity;q=0", "gzip"],
    ["gzip, *;q=0", "gzip"],
  ])("where the file is large, answers %j with %s", (header, expected) => {
    expect(negotiateEncoding(header, { prefersIdentity: true })).toBe(expected);
  });

  it("refuses a conditional request that rejects them", () => {
    expect(() => negotiateEncoding("gzip;q=1,*;q=0", { isConditional: true })).toThrow(
      "identity encoding not acceptable for Range or conditional request",
    );
  });
});
