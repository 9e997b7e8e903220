// Tests put this module before `skerry serve`. Each line of standard input arms a crash point.

import { createInterface } from "node:readline";
import { armCrashPoint } from "@skerry/base";

createInterface({ input: process.stdin }).on("line", (point) => {
  armCrashPoint(point);
  // The test waits for this line in the log.
  process.stderr.write(`armed: ${point}\n`);
});
