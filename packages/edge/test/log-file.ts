import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLogger } from "@skerry/base";

/** A logger whose lines a test reads. */
export function logToFile() {
  const dir = mkdtempSync(join(tmpdir(), "edge-log-"));
  const fd = openSync(join(dir, "log"), "a");
  return {
    logger: createLogger({ name: "edge", level: "warn", fd }),
    read: () => readFileSync(join(dir, "log"), "utf8"),
    [Symbol.dispose]: () => {
      closeSync(fd);
      rmSync(dir, { recursive: true });
    },
  };
}
