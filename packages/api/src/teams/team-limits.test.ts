import { PlatformError } from "@skerry/base";
import { expect, it } from "vitest";
import { TeamLimits } from "./team-limits.ts";

const TEAM = "a-team";
const limits = new TeamLimits({ maxBuilds: 20, maxSandboxes: 3, maxTimeoutHours: 2 });

it("accepts what is within the limits", async () => {
  limits.assertTimeout(TEAM, 7_200);
  limits.assertForks(TEAM, 2);
  expect(limits.maxRunMs(TEAM)).toBe(7_200_000);
  expect(await limits.admit(TEAM, async (maxOfTeam) => maxOfTeam)).toBe(3);
});

it("names the limit and its value when it is exceeded", async () => {
  expect(() => limits.assertTimeout(TEAM, 7_201)).toThrow("Timeout cannot be greater than 2 hours");
  expect(() => limits.assertForks(TEAM, 3)).toThrow("maximum number of concurrent sandboxes (3)");
  const full = () => Promise.reject(new PlatformError("limit_reached", "the team runs 3 sandboxes"));
  await expect(limits.admit(TEAM, full)).rejects.toMatchObject({
    code: "limit_reached",
    publicMessage: expect.stringMatching(/maximum number of concurrent E2B sandboxes \(3\).*SKERRY_MAX_SANDBOXES/),
  });
});

it("passes other failures of a change on", async () => {
  const failure = new Error("the database is away");
  await expect(limits.admit(TEAM, () => Promise.reject(failure))).rejects.toBe(failure);
});
