// Control groups for everything that is not the agent, in gVisor's own cgroup file system (version 2): its kernel knows no other
// limit of processes. Where the host's kernel does the counting, the file system is read-only in here, and there are none.
//
// Invariant: whatever is started through the API is born in such a group, so that nothing that it forks gets out. A process is
// born in the group of its parent, so the agent itself goes in for the length of one synchronous call.

import { mkdirSync, openSync, readFileSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { errnoOf } from "@skerry/base";
import { type ProcessLimit, SPARE_PROCESSES } from "./process-limit.ts";

const ROOT = "/sys/fs/cgroup";
/** No group with controllers for others may have processes itself, so the agent needs one too. */
const AGENT = "skerry";
const GUEST = "guest";
/** For what is started when the other is full. */
const SPARE = "spare";

export class GuestGroups implements ProcessLimit {
  readonly #root: string;
  /** cgroup.procs of each. */
  readonly #agent: number;
  readonly #guest: number;
  readonly #spare: number;

  private constructor(root: string) {
    this.#root = root;
    for (const name of [AGENT, GUEST, SPARE]) makeGroup(join(root, name));
    writeFileSync(join(root, AGENT, "cgroup.procs"), "0");
    writeFileSync(join(root, "cgroup.subtree_control"), "+pids");
    writeFileSync(join(root, SPARE, "pids.max"), String(SPARE_PROCESSES));
    const [agent = -1, guest = -1, spare = -1] = [AGENT, GUEST, SPARE].map((name) => openSync(join(root, name, "cgroup.procs"), "w"));
    this.#agent = agent;
    this.#guest = guest;
    this.#spare = spare;
  }

  /** Undefined where this sandbox has no such file system, or may not write to it, and where this is no sandbox. */
  static make(root = ROOT): GuestGroups | undefined {
    if (process.pid !== 1) return undefined;
    try {
      if (!readFileSync(join(root, "cgroup.controllers"), "utf8").includes("pids")) return undefined;
      return new GuestGroups(root);
    } catch (error) {
      if (["ENOENT", "EROFS", "EACCES", "EPERM"].includes(errnoOf(error) ?? "")) return undefined;
      throw error;
    }
  }

  setMost(most: number): void {
    writeFileSync(join(this.#root, GUEST, "pids.max"), String(most));
  }

  /** A guest may have spoilt the groups: then its processes are started all the same. */
  within<T>(start: () => T, isRefused: (error: unknown) => boolean): T {
    try {
      return this.#in(this.#guest, start);
    } catch (error) {
      if (!isRefused(error)) throw error;
      return this.#in(this.#spare, start);
    }
  }

  #in<T>(group: number, start: () => T): T {
    const isIn = move(group);
    try {
      return start();
    } finally {
      if (isIn) move(this.#agent);
    }
  }
}

function makeGroup(path: string): void {
  try {
    mkdirSync(path);
  } catch (error) {
    if (errnoOf(error) !== "EEXIST") throw error;
  }
}

/** 0 stands for the writer. */
function move(procsFd: number): boolean {
  try {
    writeSync(procsFd, "0", 0);
    return true;
  } catch {
    return false;
  }
}
