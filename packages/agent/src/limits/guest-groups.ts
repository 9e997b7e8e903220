// Control groups for all processes but the agent, in gVisor's own cgroup file system (version 2). gVisor's kernel has no other limit
// on processes. Where the host's kernel counts processes, this file system is read-only in the sandbox, and the groups do not exist.
//
// Invariant: every process that is started through the API is born in such a group, and so are its descendants. A process is born in
// the group of its parent, so the agent itself enters the group for the duration of one synchronous call.

import { mkdirSync, openSync, readFileSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { errnoOf } from "@skerry/base";
import { type ProcessLimit, SPARE_PROCESSES } from "./process-limit.ts";

const ROOT = "/sys/fs/cgroup";
/** The agent's own group: a group with controllers for its children may hold no processes itself. */
const AGENT = "skerry";
const GUEST = "guest";
/** The group of processes that start while the guests' group is full. */
const SPARE = "spare";

export class GuestGroups implements ProcessLimit {
  readonly #root: string;
  /** Descriptors of the groups' cgroup.procs files. */
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

  /** Undefined when the sandbox has no such file system or may not write to it, and outside a sandbox. */
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

  /** A guest with root rights may have damaged the groups. Then its processes start outside them. */
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

/** Writing 0 moves the writing process. Returns false when that fails. */
function move(procsFd: number): boolean {
  try {
    writeSync(procsFd, "0", 0);
    return true;
  } catch {
    return false;
  }
}
