import { PlatformError } from "@skerry/base";
import type { LimitValues } from "@skerry/store";
import { expect, it } from "vitest";
import { DEFAULT_LIMITS } from "./limits.ts";
import { TeamLimits } from "./team-limits.ts";

const TEAM = "a-team";
const SIZE = { cpuCount: 2, memoryMb: 512, diskSizeMb: 1024 };

function limitsOf(set: { tier?: LimitValues; overrides?: LimitValues }): TeamLimits {
  const { tier, overrides = {} } = set;
  const entry = { tier: tier && { name: "pro", limits: tier }, overrides };
  return new TeamLimits({ repository: { ofTeam: async () => entry }, defaults: { ...DEFAULT_LIMITS, sandboxes: 3, timeoutHours: 2 } });
}

it("takes a limit from the team, else from its tier, else from the settings", async () => {
  const limits = limitsOf({ tier: { sandboxes: 5, builds: 6 }, overrides: { sandboxes: 7, snapshots: null } });
  expect(await limits.of(TEAM)).toEqual({ ...DEFAULT_LIMITS, timeoutHours: 2, sandboxes: 7, builds: 6, snapshots: null });
});

it("accepts what is within the limits", async () => {
  const limits = limitsOf({});
  await limits.assertTimeout(TEAM, 7_200);
  await limits.assertForks(TEAM, 2);
  expect(await limits.maxRunMs(TEAM)).toBe(7_200_000);
  expect((await limits.admitNew(TEAM, SIZE, async (given) => given)).sandboxes).toBe(3);
  expect(await limits.admitVolume(TEAM, async (room) => ({ kind: "added", room }) as const)).toEqual({
    kind: "added",
    room: { max: Number.POSITIVE_INFINITY, maxMb: null },
  });
});

it("names the limit and its value when it is exceeded", async () => {
  const limits = limitsOf({ overrides: { volumes: 4, sandboxCpu: 1, cpu: 9 } });
  await expect(limits.assertTimeout(TEAM, 7_201)).rejects.toThrow("Timeout cannot be greater than 2 hours");
  await expect(limits.assertForks(TEAM, 3)).rejects.toThrow("maximum number of concurrent sandboxes (3)");
  const full = (name: string) => () => Promise.reject(new PlatformError("limit_reached", "full", { detailCode: name }));
  await expect(limits.admit(TEAM, full("sandboxes"))).rejects.toMatchObject({
    code: "limit_reached",
    publicMessage: expect.stringMatching(/maximum number of concurrent E2B sandboxes \(3\).*SKERRY_MAX_SANDBOXES/),
    // It is no code that clients know.
    detailCode: undefined,
  });
  await expect(limits.admit(TEAM, full("cpu"))).rejects.toThrow(/vCPUs of concurrent sandboxes \(9\).* cpu \(SKERRY_MAX_TEAM_CPU\)/);
  await expect(limits.admitVolume(TEAM, async () => ({ kind: "limit" }))).rejects.toThrow("maximum number of volumes (4)");
  const tooLarge = limits.admitNew(TEAM, SIZE, () => Promise.reject(new Error("not reached")));
  await expect(tooLarge).rejects.toMatchObject({
    code: "invalid_argument",
    publicMessage: expect.stringContaining("at most 1 (sandboxCpu)"),
  });
});

it("passes other failures of a change on", async () => {
  const failure = new Error("the database is away");
  await expect(limitsOf({}).admit(TEAM, () => Promise.reject(failure))).rejects.toBe(failure);
});
