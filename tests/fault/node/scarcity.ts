// Takes a resource away from a node's process for the time of one operation.

import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, rmdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { errnoOf, runCommand } from "@skerry/base";
import type { ChildNode } from "./child-node.ts";

/** Runs the operation. Rejects as it does. */
export type During = <T>(operation: () => Promise<T>) => Promise<T>;

const inMountsOf = (node: ChildNode, ...command: string[]) => runCommand("nsenter", [`--target=${node.pid}`, "--mount", ...command]);

/** Only so many descriptors can be opened beside those that are open. */
export function withSpareDescriptors(node: ChildNode, spare: number): During {
  const limit = (files: string) => runCommand("prlimit", [`--pid=${node.pid}`, `--nofile=${files}`]);
  return async (operation) => {
    // From here on the connection for the calls is open.
    await node.running();
    const limits = readFileSync(`/proc/${node.pid}/limits`, "utf8");
    const [, soft = "", hard = ""] = /^Max open files\s+(\S+)\s+(\S+)/m.exec(limits) ?? [];
    await limit(`${readdirSync(`/proc/${node.pid}/fd`).length + spare}:${hard}`);
    try {
      return await operation();
    } finally {
      await limit(`${soft}:${hard}`);
    }
  };
}

/** The device that gives loop devices is a null device. */
export function withoutLoopDevices(node: ChildNode): During {
  return async (operation) => {
    await inMountsOf(node, "mount", "--bind", "/dev/null", "/dev/loop-control");
    try {
      return await operation();
    } finally {
      await inMountsOf(node, "umount", "--lazy", "/dev/loop-control");
    }
  };
}

/** The program for queues says what it says on a kernel that has no token buckets. */
export function withoutTokenBuckets(node: ChildNode): During {
  return async (operation) => {
    const tc = realpathSync("/sbin/tc");
    const [real, standIn] = ["tc", "no-token-buckets"].map((name) => join(node.dir, "..", name)) as [string, string];
    copyFileSync(tc, real);
    const script = `#!/bin/sh
case "$*" in *-batch*) ;; *) exec ${real} "$@" ;; esac
lines=$(cat)
case $lines in *htb*) echo "Error: Specified qdisc kind is unknown." >&2; exit 2 ;; esac
printf '%s\\n' "$lines" | ${real} "$@"
`;
    writeFileSync(standIn, script, { mode: 0o755 });
    await inMountsOf(node, "mount", "--bind", standIn, tc);
    try {
      return await operation();
    } finally {
      await inMountsOf(node, "umount", "--lazy", tc);
    }
  };
}

/** The machine seems to have 32 MiB of free memory. */
export function withoutMemory(node: ChildNode): During {
  return async (operation) => {
    const file = join(node.dir, "..", "meminfo");
    writeFileSync(file, readFileSync("/proc/meminfo", "utf8").replace(/^MemAvailable: .*$/m, "MemAvailable:      32768 kB"));
    await inMountsOf(node, "mount", "--bind", file, "/proc/meminfo");
    try {
      return await operation();
    } finally {
      await inMountsOf(node, "umount", "--lazy", "/proc/meminfo");
    }
  };
}

const GROUP = "skerry-scarce-";

/** Removes what killed tests left. A group that a test uses has its node's process, but for the moment after it was made. */
function removeDead(root: string): void {
  for (const name of readdirSync(root).filter((one) => one.startsWith(GROUP))) {
    const group = join(root, name);
    try {
      if (Date.now() - statSync(group).mtimeMs > 60_000) rmdirSync(group);
    } catch (error) {
      if (!["EBUSY", "ENOENT"].includes(errnoOf(error) ?? "")) throw error;
    }
  }
}

/** A cgroup of the node's process that limits how many processes there can be. */
export class ProcessLimit implements AsyncDisposable {
  readonly #node: ChildNode;
  readonly #before: string;
  readonly #group: string;

  constructor(node: ChildNode) {
    const root = existsSync("/sys/fs/cgroup/pids") ? "/sys/fs/cgroup/pids" : "/sys/fs/cgroup";
    const own = readFileSync(`/proc/${node.pid}/cgroup`, "utf8");
    this.#node = node;
    this.#before = join(root, /^\d+:(?:[^:]*,)?pids(?:,[^:]*)?:(.*)$/m.exec(own)?.[1] ?? /^0::(.*)$/m.exec(own)?.[1] ?? "/");
    removeDead(root);
    this.#group = join(root, `${GROUP}${node.options.instance}`);
    mkdirSync(this.#group);
    writeFileSync(join(this.#group, "cgroup.procs"), String(node.pid));
  }

  /** Only so many processes and threads can be started beside those that run. */
  withSpare(spare: number): During {
    const file = (name: string) => join(this.#group, name);
    return async (operation) => {
      await this.#node.running();
      writeFileSync(file("pids.max"), String(Number(readFileSync(file("pids.current"), "utf8")) + spare));
      try {
        return await operation();
      } finally {
        writeFileSync(file("pids.max"), "max");
      }
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const pids = () => readFileSync(join(this.#group, "cgroup.procs"), "utf8").trim().split("\n").filter(Boolean);
    for (const pid of pids()) {
      try {
        writeFileSync(join(this.#before, "cgroup.procs"), pid);
      } catch (error) {
        // It has ended meanwhile.
        if (errnoOf(error) !== "ESRCH") throw error;
      }
    }
    for (let attempt = 0; attempt < 3_000 && pids().length > 0; attempt += 1) await sleep(20);
    rmdirSync(this.#group);
  }
}
