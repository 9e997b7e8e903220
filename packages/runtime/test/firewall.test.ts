import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { applyFirewall, networkNames, type Restriction, removeFirewall, restrictTraffic, unrestrictTraffic } from "@skerry/runtime";
import { afterEach, beforeEach, expect, it } from "vitest";

const names = networkNames(randomBytes(2).toString("hex"));
const restriction = (slot: number, closed: Restriction["closed"], proxiesAt: readonly string[] = []): Restriction => ({
  hostInterface: names.hostInterface(slot),
  closed,
  proxiesAt,
});
const apply = (...restricted: Restriction[]) =>
  applyFirewall({
    names,
    pool: "10.254.0.0/16",
    ipv6: undefined,
    resolvers: ["1.1.1.1"],
    maxConnections: 8,
    proxies: [{ address: "10.0.0.9", port: 3128 }],
    restricted,
    adopted: [],
    egress: { proxy: 61_998, dns: 61_999 },
  });

const list = (...what: string[]) => execFileSync("nft", ["list", ...what], { encoding: "utf8" });
const table = () => list("table", "inet", names.table);
const chain = (slot: number) => {
  const text = list("chain", "inet", names.table, `only_${names.hostInterface(slot)}`);
  return text
    .split("\n")
    .slice(2, -3)
    .map((line) => line.trim());
};

const sent = (slot: number) => `iifname "${names.hostInterface(slot)}"`;
const received = (slot: number) => `oifname "${names.hostInterface(slot)}"`;

beforeEach(() => apply());
afterEach(() => removeFirewall(names));

it("a restriction is made, replaced and removed, however often", async () => {
  const before = table();
  for (let round = 0; round < 2; round += 1) {
    for (const closed of [
      ["192.0.2.1", "198.51.100.0-198.51.100.9"],
      "everything",
      ["0.0.0.0-9.9.9.8", "9.9.9.10-255.255.255.255"],
    ] as const) {
      await restrictTraffic(names, restriction(1, closed));
      await restrictTraffic(names, restriction(1, closed));
    }
    const all = "{ 0.0.0.0-9.9.9.8, 9.9.9.10-255.255.255.255 }";
    expect(chain(1)).toEqual([
      `${sent(1)} ip daddr ${all} goto cut`,
      `${received(1)} ip saddr ${all} goto cut`,
      `${sent(1)} ip daddr . tcp dport @proxies goto cut`,
    ]);
    await unrestrictTraffic(names, names.hostInterface(1));
    await unrestrictTraffic(names, names.hostInterface(1));
    expect(table()).toBe(before);
  }
});

it("a restriction that nft refuses leaves the former one whole, and those of others", async () => {
  await restrictTraffic(names, restriction(1, ["192.0.2.1"], ["10.0.0.9"]));
  await restrictTraffic(names, restriction(2, "everything"));
  const before = table();
  expect(before).toContain(`${sent(1)} ip daddr != 10.0.0.9 ip daddr . tcp dport @proxies goto cut`);
  await expect(restrictTraffic(names, restriction(1, ["192.0.2.1", "no address"]))).rejects.toThrow();
  expect(table()).toBe(before);
});

it("the restrictions of running sandboxes are part of the whole table", async () => {
  await apply(restriction(1, ["192.0.2.1"]), restriction(2, "everything"));
  const before = table();
  expect(chain(2)).toEqual([`${sent(2)} goto cut`, `${received(2)} goto cut`]);
  await restrictTraffic(names, restriction(1, ["192.0.2.1"]));
  await restrictTraffic(names, restriction(2, "everything"));
  expect(table()).toBe(before);
  await unrestrictTraffic(names, names.hostInterface(1));
  expect(table()).not.toContain(names.hostInterface(1));
});

it("without a table there is nothing to remove", async () => {
  await removeFirewall(names);
  await unrestrictTraffic(names, names.hostInterface(1));
});

it("a redirection is made and removed with its restriction, and leads nowhere else", async () => {
  const before = table();
  const redirected = { tcp: [80, 443], dns: true, except: ["198.51.100.0-198.51.100.9"] };
  await restrictTraffic(names, { ...restriction(1, ["192.0.2.1"]), redirected });
  const via = () => list("chain", "inet", names.table, `via_${names.hostInterface(1)}`);
  const rules = via();
  expect(rules).toContain("ip daddr 198.51.100.0-198.51.100.9 return");
  expect(rules).toContain("meta l4proto { tcp, udp } th dport 53 goto to_resolver");
  expect(rules).toContain("tcp dport { 80, 443 } goto to_proxy");
  await restrictTraffic(names, { ...restriction(1, ["192.0.2.1"]), redirected: { tcp: "all", dns: false, except: [] } });
  expect(via()).toContain("meta l4proto tcp goto to_proxy");
  await apply({ ...restriction(1, ["192.0.2.1"]), redirected });
  expect(via()).toBe(rules);
  await unrestrictTraffic(names, names.hostInterface(1));
  expect(table()).toBe(before);
});
