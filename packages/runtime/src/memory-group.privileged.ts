// Reads the memory use of a cgroup. The files stay open, so that a hundred readings per second are cheap.

import { closeSync, existsSync, openSync, readSync } from "node:fs";
import { join } from "node:path";
import { cgroupRoots } from "./cgroup.privileged.ts";

/** File and field names of one version of cgroups. */
interface Dialect {
  readonly usage: string;
  /** The file with a line `oom_kill <n>`. */
  readonly events: string;
  /** Fields of memory.stat: pages of files that are not on a disk yet. */
  readonly unwritten: readonly string[];
  /** Fields of memory.stat: memory of processes. */
  readonly own: readonly string[];
  /** Fields of memory.stat: memory that only the end of a process, or a deletion, frees. */
  readonly held: readonly string[];
}

// Version 1 does not distinguish reclaimable kernel memory (inodes, directory entries), so its kernel memory is not counted.
// In version 1, fields without the prefix `total_` do not include child cgroups.
const DIALECTS: readonly Dialect[] = [
  {
    usage: "memory.usage_in_bytes",
    events: "memory.oom_control",
    unwritten: ["total_dirty", "total_writeback"],
    own: ["total_rss"],
    held: ["total_rss", "total_shmem"],
  },
  {
    usage: "memory.current",
    events: "memory.events",
    unwritten: ["file_dirty", "file_writeback"],
    own: ["anon"],
    held: ["anon", "shmem", "kernel_stack", "pagetables", "slab_unreclaimable", "sock"],
  },
];

/** memory.stat of version 2 has about 60 lines. */
const READ_BYTES = 8192;
const buffer = Buffer.allocUnsafe(READ_BYTES);

/** Memory readings of a cgroup. They are 0 after the cgroup was removed. */
export class MemoryGroup {
  readonly #usageFd: number;
  readonly #statFd: number;
  readonly #eventsFd: number;
  readonly #held: RegExp;
  readonly #unwritten: RegExp;
  readonly #own: RegExp;

  private constructor(dir: string, dialect: Dialect) {
    const opened: number[] = [];
    const open = (name: string) => {
      const fd = openSync(join(dir, name), "r");
      opened.push(fd);
      return fd;
    };
    try {
      this.#usageFd = open(dialect.usage);
      this.#statFd = open("memory.stat");
      this.#eventsFd = open(dialect.events);
    } catch (error) {
      for (const fd of opened) closeSync(fd);
      throw error;
    }
    this.#held = linesOf(dialect.held);
    this.#unwritten = linesOf(dialect.unwritten);
    this.#own = linesOf(dialect.own);
  }

  /** Throws when no hierarchy has this cgroup with a memory controller. */
  static open(cgroupPath: string, roots: readonly string[] = cgroupRoots()): MemoryGroup {
    for (const root of roots) {
      const dir = join(root, cgroupPath);
      const dialect = DIALECTS.find(({ usage }) => existsSync(join(dir, usage)));
      if (dialect) return new MemoryGroup(dir, dialect);
    }
    throw new Error(`cgroup ${cgroupPath} has no memory controller`);
  }

  /** All memory that is charged to the cgroup, including page cache. */
  usageBytes(): number {
    return Number(read(this.#usageFd)) || 0;
  }

  /** Memory that the kernel cannot reclaim: memory of processes and of file systems in memory, without page cache. */
  heldBytes(): number {
    return this.#sumOf(this.#held);
  }

  /** Dirty pages of files, which are not on a disk yet. */
  unwrittenBytes(): number {
    return this.#sumOf(this.#unwritten);
  }

  /** Private memory of its processes. On gVisor that is gVisor's own memory, because the memory of the guest is a file. */
  ownBytes(): number {
    return this.#sumOf(this.#own);
  }

  #sumOf(lines: RegExp): number {
    let sum = 0;
    for (const [, bytes] of read(this.#statFd).matchAll(lines)) sum += Number(bytes);
    return sum;
  }

  /** Number of processes that the kernel has killed because the cgroup reached its limit. */
  kernelKills(): number {
    return Number(/^oom_kill (\d+)$/m.exec(read(this.#eventsFd))?.[1] ?? 0);
  }

  close(): void {
    for (const fd of [this.#usageFd, this.#statFd, this.#eventsFd]) closeSync(fd);
  }
}

function linesOf(fields: readonly string[]): RegExp {
  return new RegExp(`^(?:${fields.join("|")}) (\\d+)$`, "gm");
}

function read(fd: number): string {
  try {
    return buffer.toString("latin1", 0, readSync(fd, buffer, 0, READ_BYTES, 0));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENODEV") return "";
    throw error;
  }
}
