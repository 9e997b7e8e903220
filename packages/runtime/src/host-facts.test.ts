import { expect, it } from "vitest";
import { readHostFacts } from "./host-facts.privileged.ts";

const line = (hard: string) =>
  `Limit                     Soft Limit           Hard Limit           Units     \nMax open files            1024                 ${hard}               files     \n`;

it("takes the daemon's own hard limit of open files, up to a ceiling", () => {
  expect(readHostFacts(line("20000")).maxOpenFiles).toBe(20_000);
  expect(readHostFacts(line("unlimited")).maxOpenFiles).toBe(1_048_576);
  expect(readHostFacts(line("1073741816")).maxOpenFiles).toBe(1_048_576);
});

it("fails when the kernel's table has no such line", () => {
  expect(() => readHostFacts("nothing")).toThrow(/open files/);
});
