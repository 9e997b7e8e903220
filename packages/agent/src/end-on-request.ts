import { rmSync, writeFileSync } from "node:fs";
import { END_MARK } from "@skerry/wire";

const MARK = `/${END_MARK}`;

/**
 * Lets the guest's root end its sandbox with SIGTERM or SIGINT, as on any machine. A mark on the disk tells the node that this was
 * no crash. Preconditions: the agent is process 1 of a sandbox.
 */
export function endOnRequest(): void {
  rmSync(MARK, { force: true });
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    process.once(signal, () => {
      try {
        writeFileSync(MARK, "");
      } finally {
        process.exit(0);
      }
    });
  }
}
