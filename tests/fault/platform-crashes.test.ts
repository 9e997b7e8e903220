import { describe, expect, it } from "vitest";
import { describePlatformCrashes } from "./platform-crashes/describe-platform-crashes.ts";
import { unreachedOperations } from "./platform-crashes/platform-cases.ts";

it("every operation of a node that has crash points is reached through the API", () => {
  expect(unreachedOperations()).toEqual([]);
});

describe("kill -9 of a platform on gvisor, with memory at stake", () =>
  describePlatformCrashes("gvisor", ["pause", "resume", "snapshot", "fork", "change of its network"]));
