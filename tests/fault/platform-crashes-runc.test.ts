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
    "creation of a volume",
    "deletion of a volume",
    "upload to a volume",
    "death of its runtime",
  ]));
