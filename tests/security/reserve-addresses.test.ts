import { runCommand } from "@skerry/base";
import { expect, it } from "vitest";
import { reserveAddresses } from "./reserve-addresses.ts";

// In a namespace of its own, because other tests make and remove interfaces of the machine at any moment.
it("an address of the machine, or of a network that it has a route to, is found", async () => {
  const namespace = `skerry-test-${process.pid}-own`;
  const ip = (...args: string[]) => runCommand("ip", ["-n", namespace, ...args]);
  await runCommand("ip", ["netns", "add", namespace]);
  try {
    await ip("link", "set", "lo", "up");
    await ip("address", "add", "198.51.100.9/25", "dev", "lo");
    await ip("route", "add", "203.0.113.0/25", "dev", "lo");
    await ip("route", "add", "default", "dev", "lo");
    const asked = ["127.9.9.9", "198.51.100.9", "198.51.100.77", "203.0.113.9", "198.51.100.200", "203.0.113.200", "240.0.0.1"];
    const program = `
      const { isOfMachine } = await import(${JSON.stringify(new URL("reserve-addresses.ts", import.meta.url).href)});
      console.log(JSON.stringify(${JSON.stringify(asked)}.filter(isOfMachine)));`;
    const node = [process.execPath, "--input-type=module", "--eval", program];
    const { stdout } = await runCommand("nsenter", [`--net=/run/netns/${namespace}`, ...node]);
    expect(JSON.parse(stdout)).toEqual(asked.slice(0, 4));
  } finally {
    await runCommand("ip", ["netns", "del", namespace]);
  }
});

it("an address of the machine is never taken", async () => {
  const candidate = { namespace: `skerry-test-${process.pid}-never`, addresses: ["127.9.9.9"] };
  await expect(reserveAddresses([candidate])).rejects.toThrow("are taken");
});

it("two tests never have the same addresses", async () => {
  const candidates = ["a", "b"].map((name) => ({ namespace: `skerry-test-${process.pid}-${name}`, addresses: ["240.0.0.1"] }));
  try {
    const both = await Promise.all([reserveAddresses(candidates), reserveAddresses(candidates)]);
    expect(new Set(both).size).toBe(2);
    await expect(reserveAddresses(candidates)).rejects.toThrow("are taken");
  } finally {
    for (const { namespace } of candidates) await runCommand("ip", ["netns", "del", namespace]);
  }
});
