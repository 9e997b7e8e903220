// Reads the CPU time of a cgroup. The file stays open, so that frequent readings are cheap.

import { closeSync, existsSync, openSync, readSync } from "node:fs";
import { join } from "node:path";
import { cgroupRoots } from "./cgroup.privileged.ts";

/** The file of each version of cgroups, and how many seconds its number stands for. */
const DIALECTS = [
  { name: "cpuacct.usage", pattern: /^(\d+)/, unitSeconds: 1e-9 },
  { name: "cpu.stat", pattern: /^usage_usec (\d+)/m, unitSeconds: 1e-6 },
] as const;

const READ_BYTES = 1024;
const buffer = Buffer.allocUnsafe(READ_BYTES);

export class CpuGroup {
  readonly #fd: number;
  readonly #dialect: (typeof DIALECTS)[number];

  private constructor(fd: number, dialect: (typeof DIALECTS)[number]) {
    this.#fd = fd;
    this.#dialect = dialect;
  }

  /** Throws when no hierarchy counts the CPU time of this cgroup. */
  static open(cgroupPath: string, roots: readonly string[] = cgroupRoots()): CpuGroup {
    for (const dialect of DIALECTS) {
      for (const root of roots) {
        const file = join(root, cgroupPath, dialect.name);
        // A cpu.stat of version 1 does not count the time.
        if (existsSync(file) && (dialect.name !== "cpu.stat" || existsSync(join(root, cgroupPath, "cgroup.controllers"))))
          return new CpuGroup(openSync(file, "r"), dialect);
      }
    }
    throw new Error(`the CPU time of cgroup ${cgroupPath} is not counted`);
  }

  /** CPU time of all processes since the cgroup was created; 0 after it was removed. */
  usedSeconds(): number {
    try {
      const text = buffer.toString("latin1", 0, readSync(this.#fd, buffer, 0, READ_BYTES, 0));
      return Number(this.#dialect.pattern.exec(text)?.[1] ?? 0) * this.#dialect.unitSeconds;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENODEV") return 0;
      throw error;
    }
  }

  close(): void {
    closeSync(this.#fd);
  }
}
