// What a control group holds in memory, read so cheaply that it can be asked a hundred times a second: the files stay open.

import { closeSync, existsSync, openSync, readSync } from "node:fs";
import { join } from "node:path";
import { cgroupRoots } from "./cgroup.privileged.ts";

/** Names and fields of one version of the interface. */
interface Dialect {
  readonly usage: string;
  /** Has a line `oom_kill <n>`. */
  readonly events: string;
  /** Fields of memory.stat: of files, and not on a disk yet. */
  readonly unwritten: readonly string[];
  /** Fields of memory.stat: of processes alone. */
  readonly own: readonly string[];
  /** Fields of memory.stat that only the end of a process (or a deletion) gives back. */
  readonly held: readonly string[];
}

// Version 1 tells kernel memory that can be reclaimed (inodes, directory entries) from the rest nowhere, so it is left out there.
// The plain fields of version 1 are without child groups.
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

/** A group that is gone holds nothing: readings are 0 then. */
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

  /** Throws when no hierarchy of this machine has the group with a memory controller. */
  static open(cgroupPath: string, roots: readonly string[] = cgroupRoots()): MemoryGroup {
    for (const root of roots) {
      const dir = join(root, cgroupPath);
      const dialect = DIALECTS.find(({ usage }) => existsSync(join(dir, usage)));
      if (dialect) return new MemoryGroup(dir, dialect);
    }
    throw new Error(`control group ${cgroupPath} has no memory controller`);
  }

  /** All that is charged to the group, page cache of files included. */
  usageBytes(): number {
    return Number(read(this.#usageFd)) || 0;
  }

  /** What the kernel can't take back by itself: memory of processes and of memory file systems, without page cache. */
  heldBytes(): number {
    return this.#sumOf(this.#held);
  }

  /** What was written to files and is on no disk yet. */
  unwrittenBytes(): number {
    return this.#sumOf(this.#unwritten);
  }

  /** Memory that its processes have as their own. On gVisor the guest's memory is a file: what is left is gVisor's. */
  ownBytes(): number {
    return this.#sumOf(this.#own);
  }

  #sumOf(lines: RegExp): number {
    let sum = 0;
    for (const [, bytes] of read(this.#statFd).matchAll(lines)) sum += Number(bytes);
    return sum;
  }

  /** How many processes the kernel has killed here because the group's limit was reached. */
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
