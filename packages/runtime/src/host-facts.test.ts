import { expect, it } from "vitest";
import { readHostFacts } from "./host-facts.privileged.ts";

const line = (hard: string) =>
  `Limit                     Soft Limit           Hard Limit           Units     \nMax open files            1024                 ${hard}               files     \n`;

it("reads the daemon's hard limit of open files, up to an upper bound", () => {
  expect(readHostFacts(line("20000")).maxOpenFiles).toBe(20_000);
  expect(readHostFacts(line("unlimited")).maxOpenFiles).toBe(1_048_576);
  expect(readHostFacts(line("1073741816")).maxOpenFiles).toBe(1_048_576);
});

it("throws when /proc/self/limits has no such line", () => {
  expect(() => readHostFacts("nothing")).toThrow(/open files/);
});
