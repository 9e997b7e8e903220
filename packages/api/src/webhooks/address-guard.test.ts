import type { LookupAddress } from "node:dns";
import { networkInterfaces } from "node:os";
import { describe, expect, it } from "vitest";
import { AddressGuard } from "./address-guard.ts";

const none = async () => [];
const lookup = (guard: AddressGuard, protocol: "http:" | "https:", name = "x.example") =>
  new Promise<readonly LookupAddress[]>((resolve, reject) =>
    guard.lookup(protocol)(name, { all: true }, (error, found) => (error ? reject(error) : resolve(found as LookupAddress[]))),
  );

describe("the addresses of webhooks", () => {
  const guard = new AddressGuard([], none);

  it.each([
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "127.0.0.1",
    "169.254.169.254",
    "172.16.0.1",
    "192.0.0.1",
    "192.0.2.1",
    "192.168.1.1",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:10.0.0.1",
    "::ffff:127.0.0.1",
    "::127.0.0.1",
    "64:ff9b::a00:1",
    "64:ff9b:1::1",
    "2001::1",
    "2002:a00:1::1",
    "2001:db8::1",
    "fc00::1",
    "fd00::1",
    "fe80::1",
    "ff02::1",
    "no address",
  ])("%s is refused", (address) => {
    expect(guard.allows(address, "https:")).toBe(false);
  });

  it.each(["1.1.1.1", "8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8"])("%s is allowed over https alone", (address) => {
    expect(guard.allows(address, "https:")).toBe(true);
    expect(guard.allows(address, "http:")).toBe(false);
  });

  it("does not lead to the host itself", () => {
    const own = () => Object.values(networkInterfaces()).flatMap((all) => all ?? []);
    const before = own();
    expect(before.length).toBeGreaterThan(0);
    for (const { address } of before) {
      const allowed = guard.allows(address.split("%")[0] ?? "", "https:");
      // Another test may have removed the interface in between.
      expect(allowed && own().some((one) => one.address === address), address).toBe(false);
    }
  });

  it("includes what the operator opened, and nothing beside it", () => {
    const opened = new AddressGuard(["10.1.0.0/16", "192.168.0.5", "fd00:1::/32"], none);
    for (const address of ["10.1.255.1", "192.168.0.5", "fd00:1::9", "::ffff:10.1.0.1"]) {
      expect(opened.allows(address, "http:"), address).toBe(true);
      expect(opened.allows(address, "https:"), address).toBe(true);
    }
    for (const address of ["10.2.0.1", "192.168.0.6", "fd00:2::9", "127.0.0.1"])
      expect(opened.allows(address, "https:"), address).toBe(false);
  });

  it("are those of the connection: a name is resolved and checked once, and a name that mixes both kinds leads to the allowed one", async () => {
    const answers = [["1.1.1.1"], ["10.0.0.1"], ["10.0.0.1", "2606:4700::1111", "::1"]];
    const rebound = new AddressGuard([], async () => answers.shift() ?? []);
    expect(await lookup(rebound, "https:")).toEqual([{ address: "1.1.1.1", family: 4 }]);
    await expect(lookup(rebound, "https:")).rejects.toThrow("x.example leads to no address that webhooks may use");
    expect(await lookup(rebound, "https:")).toEqual([{ address: "2606:4700::1111", family: 6 }]);
    await expect(lookup(rebound, "https:")).rejects.toThrow("no address");
  });

  it("of one connection that takes a single address are checked too", async () => {
    const single = new AddressGuard([], async () => ["10.0.0.1", "1.1.1.1"]);
    const found = await new Promise((resolve) => single.lookup("https:")("x", {}, (_error, address, family) => resolve([address, family])));
    expect(found).toEqual(["1.1.1.1", 4]);
  });
});
