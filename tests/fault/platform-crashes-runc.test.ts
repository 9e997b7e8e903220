import { describe } from "vitest";
import { describePlatformCrashes } from "./platform-crashes/describe-platform-crashes.ts";

// platform-crashes.test.ts has the sample of crash points.
describe("kill -9 of a platform on runc, which keeps no memory", () =>
  describePlatformCrashes("runc", [
    "create",
    "create from a snapshot",
    "pause",
    "resume",
    "snapshot",
    "fork",
    "fork of a paused one",
    "kill",
    "kill of a paused one",
    "deletion of a snapshot",
    "change of its network",
    "death of its runtime",
  ]));
