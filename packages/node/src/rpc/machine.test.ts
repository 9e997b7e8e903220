import { tmpdir } from "node:os";
import { expect, it } from "vitest";
import { cpuFacts, Machine } from "./machine.ts";

it("reads the first CPU's facts", () => {
  const text = "processor\t: 0\ncpu family\t: 25\nmodel\t\t: 1\nmodel name\t: AMD EPYC: x\n\nmodel\t\t: 2\n";
  expect(cpuFacts(text)).toEqual({ cpuFamily: "25", cpuModel: "1", cpuModelName: "AMD EPYC: x" });
  expect(cpuFacts("processor : 0\n")).toEqual({ cpuFamily: "", cpuModel: "", cpuModelName: "" });
});

it("stays within what the machine has, however often it is asked", async () => {
  const machine = new Machine(tmpdir());
  for (let i = 0; i < 3; i++) {
    const facts = await machine.read();
    expect(facts.cpuPercent).toBeGreaterThanOrEqual(0);
    expect(facts.cpuPercent).toBeLessThanOrEqual(100);
    expect(facts.memoryUsedBytes).toBeGreaterThan(0n);
    expect(facts.diskUsedBytes).toBeLessThanOrEqual(facts.diskTotalBytes);
  }
});
