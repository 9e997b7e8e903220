import { describe, expect, it } from "vitest";
import { networkNames } from "./names.ts";

describe("network names", () => {
  const names = networkNames("1a2b");

  it("fit into an interface name for every slot", () => {
    expect(names.hostInterface(32_767)).toBe("sk1a2bv32767");
    expect(names.hostInterface(32_767).length).toBeLessThanOrEqual(15);
  });

  it("find a slot by its namespace, and no other instance's", () => {
    expect(names.slotOf(names.namespace(12))).toBe(12);
    expect(names.slotOf("sk1a2c-12")).toBeUndefined();
    expect(names.slotOf("sk1a2b-12x")).toBeUndefined();
  });

  it.each(["", "1a2", "1a2b3", "zzzz", "../x"])("refuse the instance %j", (instance) => {
    expect(() => networkNames(instance)).toThrow(/instance/);
  });
});
