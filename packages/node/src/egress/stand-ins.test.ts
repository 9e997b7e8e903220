import { expect, test } from "vitest";
import { isStandIn, StandIns } from "./stand-ins.ts";

test("a name has one address, which another process would give it too", () => {
  const [one, other] = [new StandIns(), new StandIns()];
  const address = one.addressOf("api.example");
  expect(isStandIn(address)).toBe(true);
  expect(one.addressOf("api.example")).toBe(address);
  expect(other.addressOf("api.example")).toBe(address);
  expect(one.nameOf(address)).toBe("api.example");
});

test("no two names share an address, and only the names that were asked for last are kept", () => {
  const standIns = new StandIns();
  const names = Array.from({ length: 5_000 }, (_, at) => `host-${at}.example`);
  const addresses = names.map((name) => standIns.addressOf(name));
  const kept = addresses.map((address, at) => standIns.nameOf(address) === names[at]);
  expect(kept.slice(0, 904)).not.toContain(true);
  expect(kept.slice(904)).not.toContain(false);
  standIns.addressOf(names[904] ?? "");
  standIns.addressOf("new.example");
  expect(standIns.nameOf(addresses[904] ?? "")).toBe(names[904]);
});

test.each(["198.18.255.255", "198.20.0.0", "10.0.0.1", "", "198.19"])("%j stands for nothing", (address) => {
  expect(new StandIns().nameOf(address)).toBeUndefined();
});
