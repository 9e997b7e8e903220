// Loaded before `skerry serve` (node --import) by tests that end it at a named point: each line of its standard input arms one.

import { createInterface } from "node:readline";
import { armCrashPoint } from "@skerry/base";

createInterface({ input: process.stdin }).on("line", (point) => {
  armCrashPoint(point);
  // The test waits for this in the log.
  process.stderr.write(`armed: ${point}\n`);
});
