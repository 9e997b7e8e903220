import { describe } from "vitest";
import { describePlatformCrashes } from "./platform-crashes/describe-platform-crashes.ts";

// platform-crashes.test.ts has the sample of crash points.
describe("kill -9 of a platform on gvisor, in operations that start, copy and end sandboxes, and on volumes", () =>
  describePlatformCrashes("gvisor", [
    "create",
    "create from a snapshot",
    "snapshot of the disk",
    "fork of a paused one",
    "kill",
    "kill of a paused one",
    "deletion of a snapshot",
    "creation of a volume",
    "deletion of a volume",
    "upload to a volume",
    "death of its runtime",
  ]));
