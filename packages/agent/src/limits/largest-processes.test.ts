import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { parseStat } from "./largest-processes.ts";

it("reads name and memory of a process whose name looks like fields", () => {
  const stat = `42 (a) S 1 (b) R 1 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 100 9000000 250 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1`;
  expect(parseStat(stat)).toEqual({ name: "a) S 1 (b", bytes: 250 * 4096 });
});

it("agrees with what the kernel says of this process", () => {
  const resident = Number(readFileSync("/proc/self/statm", "latin1").split(" ")[1]) * 4096;
  const { bytes } = parseStat(readFileSync("/proc/self/stat", "latin1"));
  expect(Math.abs(bytes - resident)).toBeLessThan(16 * 1024 * 1024);
});
