import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { CpuGroup } from "./cpu-group.privileged.ts";

const root = mkdtempSync(join(tmpdir(), "skerry-cpu-group-"));
afterEach(() => rmSync(root, { recursive: true, force: true }));

function write(path: string, text: string): void {
  mkdirSync(join(root, path, ".."), { recursive: true });
  writeFileSync(join(root, path), text);
}

const roots = () => ["cpu", "memory", "unified"].map((name) => join(root, name));

function used(): number {
  const group = CpuGroup.open("/s/i1", roots());
  const seconds = group.usedSeconds();
  group.close();
  return seconds;
}

it("reads the CPU time of version 1, whose cpu.stat says something else", () => {
  write("cpu/s/i1/cpu.stat", "nr_periods 5\nnr_throttled 1\n");
  write("cpu/s/i1/cpuacct.usage", "2500000000\n");
  expect(used()).toBe(2.5);
});

it("reads the CPU time of version 2", () => {
  write("unified/s/i1/cgroup.controllers", "cpu\n");
  write("unified/s/i1/cpu.stat", "usage_usec 1500000\nuser_usec 1\n");
  expect(used()).toBeCloseTo(1.5);
});

it("refuses a cgroup that no hierarchy counts", () => {
  write("cpu/s/i1/cpu.stat", "nr_periods 5\n");
  expect(used).toThrow("is not counted");
});
