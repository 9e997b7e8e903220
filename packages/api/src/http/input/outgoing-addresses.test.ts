import { describe, expect, it } from "vitest";
import { assertOutgoing } from "./outgoing-addresses.ts";

const check = (allowed: readonly string[], denied: readonly string[]) => () => assertOutgoing({ allowed, denied });

describe("the rules for outgoing traffic", () => {
  it.each([
    [[], []],
    [["1.1.1.1", "8.8.8.0/24", "0.0.0.0/0"], ["0.0.0.0/0"]],
    [["0.0.0.0"], ["1.2.3.4", "10.1.2.3/8", "::/0", "2001:db8::/32", "2001:db8::1"]],
  ])("may be allowed %j and denied %j", (allowed, denied) => {
    expect(check(allowed, denied)).not.toThrow();
  });

  it.each([
    "0.0.0.0",
    "::",
    "example.com",
    "*",
    "*.example.com",
    "",
    "1.2.3.4/33",
    "1.2.3.4/",
    "::/129",
    "fe80::1%eth0",
    "1.2.3.4/8/8",
    "1.2.3.4 }",
  ])("can't deny %j", (entry) => {
    expect(check([], [entry])).toThrow(`invalid denied CIDR ${entry}`);
    expect(check([], ["1.1.1.1", entry])).toThrow(expect.objectContaining({ code: "invalid_argument" }));
  });

  it.each([
    "",
    "1.2.3",
    "1.2.3.4.5",
    "256.1.1.1",
    "1.2.3.4/33",
    "http://example.com",
    "example.com:443",
    "exa mple.com",
    "a*.example.com",
    "localhost",
    "*.",
    "-a.com",
    `${"a".repeat(64)}.com`,
  ])("can't allow %j", (entry) => {
    expect(check([entry], ["0.0.0.0/0"])).toThrow(`invalid allowed address ${entry.slice(0, 100)}`);
  });

  it("have addresses of IPv6", () => {
    expect(check(["2001:db8::1", "2001:db8::/32"], ["::/0"])).not.toThrow();
    expect(check(["2001:db8::1/129"], [])).toThrow("invalid allowed address");
    expect(check([], ["::"])).toThrow("invalid denied CIDR");
  });

  it.each(["example.com", "*.example.com", "*", "Example.COM", "xn--bcher-kva.example", "_dns.example.com."])(
    "can't allow the name %s without a denial of everything, and can with one",
    (name) => {
      const all = "When specifying allowed domains in allow out, you must include 'ALL_TRAFFIC' in deny out to block all other traffic.";
      expect(check([name], [])).toThrow(all);
      expect(check(["1.1.1.1", name], ["0.0.0.0/1", "128.0.0.0/1"])).toThrow(all);
      expect(check([name], ["0.0.0.0/0"])).not.toThrow();
    },
  );

  it("are limited in number", () => {
    const many = Array.from({ length: 1_001 }, (_, index) => `1.1.${index >> 8}.${index & 255}`);
    expect(check(many.slice(1), many.slice(1))).not.toThrow();
    expect(check(many, [])).toThrow(/^validation error.*1000/);
    expect(check([], many)).toThrow(/^validation error.*1000/);
  });
});
