// Chooses the process that the host's OOM killer takes when a gVisor sandbox reaches its memory limit.
//
// For the host such a sandbox is a tree of processes: gVisor's kernel, its file server, and one stub for each address space of the guest. All
// stubs are forked from a first stub that stays idle. By default the OOM killer takes the largest process. When the guest has many
// small processes, that is gVisor's kernel, and the whole sandbox ends. A killed stub ends one guest process only. So this module marks all
// stubs except the agent's as the first to kill.

import { readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { setPriority } from "node:os";
import { AGENT_MOUNT_POINT } from "./spec/mounts.ts";

/** The highest value. The OOM killer takes processes with it first, the largest before the others. */
const FIRST_TO_GO = "1000";
const LAST_TO_GO = "0";

export interface GuestProcesses {
  /** Processes that are marked as the first to kill. They include the idle first stub, from which later stubs inherit the mark. */
  readonly guests: number;
  readonly agents: number;
}

/**
 * Marks the guest processes of a cgroup. Preconditions: the agent runs, because its stub is recognised by the program that it has mapped.
 * Raising the value needs no privilege. Lowering it again needs none either, unless a process with CAP_SYS_RESOURCE has set it.
 */
export function sacrificeGuestsFirst(list: () => readonly number[]): GuestProcesses {
  const seen = new Map<number, "gvisor" | "agent" | "guest">();
  // Repeats until there is no new process, because stubs may have been forked before the first stub was marked.
  for (let fresh = list(); fresh.length > 0; fresh = list().filter((pid) => !seen.has(pid))) {
    for (const pid of fresh) {
      const kind = ifThere(() => kindOf(readlinkSync(`/proc/${pid}/exe`), readFileSync(`/proc/${pid}/maps`, "utf8"))) ?? "guest";
      seen.set(pid, kind);
      if (kind === "guest") mark(pid, FIRST_TO_GO);
      // After a restore the agent's stub has inherited the mark.
      if (kind === "agent") mark(pid, LAST_TO_GO);
    }
  }
  const count = (wanted: string) => [...seen.values()].filter((kind) => kind === wanted).length;
  return { guests: count("guest"), agents: count("agent") };
}

/** Tells gVisor's processes from stubs. A stub is a fork of gVisor's kernel with the same program, but has no page of it mapped. */
export function kindOf(program: string, maps: string): "gvisor" | "agent" | "guest" {
  const files = new Set(maps.split("\n").map((line) => line.slice(line.indexOf("/"))));
  if (files.has(program)) return "gvisor";
  return [...files].some((file) => file.endsWith(`${AGENT_MOUNT_POINT}/bin/node`)) ? "agent" : "guest";
}

/** The processes that `sacrificeGuestsFirst` does not mark: gVisor's own and the agent's. */
export function sparedProcesses(pids: readonly number[]): number[] {
  return pids.filter((pid) => ifThere(() => readFileSync(`/proc/${pid}/oom_score_adj`, "utf8").trim()) === LAST_TO_GO);
}

/**
 * Sets the niceness of all threads of the processes. Within a cgroup, threads with a lower value run first. The previous value is not kept;
 * gVisor's own value is about 0. Does nothing where the host does not permit it.
 */
export function setNiceness(pids: readonly number[], niceness: number): void {
  for (const pid of pids) {
    for (const thread of ifThere(() => readdirSync(`/proc/${pid}/task`)) ?? []) {
      try {
        setPriority(Number(thread), niceness);
      } catch {
        // The thread has ended, or the host does not permit it.
      }
    }
  }
}

function mark(pid: number, score: string): void {
  ifThere(() => writeFileSync(`/proc/${pid}/oom_score_adj`, score));
}

function ifThere<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch (error) {
    if (["ENOENT", "ESRCH"].includes((error as NodeJS.ErrnoException).code ?? "")) return undefined;
    throw error;
  }
}
