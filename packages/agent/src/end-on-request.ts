import { rmSync, writeFileSync } from "node:fs";
import { END_MARK } from "@skerry/wire";

const MARK = `/${END_MARK}`;

/**
 * Lets the guest's root end its sandbox as it would stop any machine's first process: by SIGTERM or SIGINT. The node tells that from a
 * crash by a mark on the disk. Preconditions: this is process 1 of a sandbox.
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
