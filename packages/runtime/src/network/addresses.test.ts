import { describe, expect, it } from "vitest";
import { addressesOf, parsePrefix, planAddresses } from "./addresses.ts";

describe("address plan", () => {
  it("gives each slot the two addresses of a /31, the host's first", () => {
    const plan = addressesOf("10.213.0.0/16");
    expect(plan.slots).toBe(32_768);
    expect(plan.of(0)).toEqual({ host: "10.213.0.0", guest: "10.213.0.1" });
    expect(plan.of(200)).toEqual({ host: "10.213.1.144", guest: "10.213.1.145" });
    expect(plan.of(32_767)).toEqual({ host: "10.213.255.254", guest: "10.213.255.255" });
  });

  it("refuses a slot outside the pool", () => {
    expect(() => addressesOf("10.0.0.0/30").of(2)).toThrow(/not in 10.0.0.0\/30/);
    expect(() => addressesOf("10.0.0.0/30").of(-1)).toThrow();
  });

  it.each(["10.0.0.0", "10.0.0.0/8", "10.0.0.0/31", "10.0.0.256/16", "fd00::/64", "", "10.0.0.0/16 "])("refuses %j as a pool", (pool) => {
    expect(() => addressesOf(pool)).toThrow(/network pool/);
  });

  it("avoids prefixes that the host routes, whatever their size", () => {
    const routed = ["0.0.0.0/0", "10.0.0.0/9", "10.171.2.0/24", "192.168.0.0/16"];
    expect(planAddresses({ wanted: undefined, instance: "00aa", routed }).pool).toBe("10.170.0.0/16");
    expect(planAddresses({ wanted: undefined, instance: "00ab", routed }).pool).toBe("10.172.0.0/16");
    expect(planAddresses({ wanted: undefined, instance: "0005", routed }).pool).toBe("10.128.0.0/16");
  });

  it("names the setting when no prefix is free", () => {
    expect(() => planAddresses({ wanted: undefined, instance: "0000", routed: ["10.0.0.0/8"] })).toThrow(/SKERRY_NETWORK_POOL/);
  });

  it("uses the wanted pool even when it is routed, because the route may be its own", () => {
    expect(planAddresses({ wanted: "10.9.0.0/20", instance: "0000", routed: ["10.9.0.0/20"] }).pool).toBe("10.9.0.0/20");
  });

  it("rounds a prefix down to its own boundary", () => {
    expect(parsePrefix("10.1.2.3/16")).toEqual({ base: 10 * 2 ** 24 + 2 ** 16, length: 16 });
  });
});
