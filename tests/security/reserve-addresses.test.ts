import { networkInterfaces } from "node:os";
import { runCommand } from "@skerry/base";
import { expect, it } from "vitest";
import { isOfMachine, reserveAddresses } from "./reserve-addresses.ts";

it("an address of the machine or of a network of it is never taken", async () => {
  const own = Object.values(networkInterfaces())
    .flatMap((of) => of ?? [])
    .filter(({ family }) => family === "IPv4");
  expect(own.length).toBeGreaterThan(0);
  for (const { address } of own) expect(isOfMachine(address)).toBe(true);
  expect(isOfMachine("127.9.9.9")).toBe(true);
  expect(isOfMachine("240.0.0.1")).toBe(false);
  await expect(reserveAddresses([{ namespace: "skerry-test-never", addresses: ["127.9.9.9"] }])).rejects.toThrow("are taken");
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
