import { expect, it } from "vitest";
import { memoryPlan } from "./memory-plan.ts";
import { nextLookMs } from "./next-look.ts";
import { hostProcessLimit, processLimit } from "./process-limit.ts";

const MIB = 1024 * 1024;

it("puts the guard's limit above what the guest is told, and the host's above that", () => {
  for (const runtime of ["gvisor", "runc"] as const) {
    for (const memoryMb of [128, 512, 8192]) {
      const { guestBytes, guardBytes, hostBytes } = memoryPlan(memoryMb, runtime);
      expect(guestBytes).toBe(memoryMb * MIB);
      expect(guardBytes).toBeGreaterThan(guestBytes);
      expect(hostBytes).toBeGreaterThan(guardBytes);
    }
  }
});

it("looks again before a guest could have reached its limit, never all the time and never late", () => {
  expect(nextLookMs(640 * MIB, 640 * MIB)).toBe(5);
  expect(nextLookMs(700 * MIB, 640 * MIB)).toBe(5);
  expect(nextLookMs(240 * MIB, 640 * MIB)).toBe(100);
  expect(nextLookMs(0, 8192 * MIB)).toBe(200);
});

it("gives more processes to more memory, within bounds", () => {
  expect([128, 512, 1024, 65_536].map(processLimit)).toEqual([256, 512, 1024, 4096]);
});

it("leaves gVisor's kernel more of the host's processes than its guest can make it use", () => {
  // One for system calls, and one for each of the guest's threads that runs.
  expect(hostProcessLimit(512, "gvisor")).toBeGreaterThan(2 * processLimit(512));
  expect(hostProcessLimit(512, "runc")).toBe(processLimit(512));
});
