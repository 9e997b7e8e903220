// Whom the kernel ends when a gVisor sandbox reaches its memory limit.
//
// To the host such a sandbox is a tree of processes: gVisor's kernel, its file server, and one stub for each address space of
// the guest, all forked from one first stub that stays idle. Left alone, the host takes the largest, which is gVisor's kernel
// as soon as the guest has many small processes: and with it the whole sandbox. A stub that is killed costs the guest that one
// process, with SIGKILL. So stubs are marked to go first, except the agent's.

import { readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { setPriority } from "node:os";
import { AGENT_MOUNT_POINT } from "./spec/mounts.ts";

/** The highest: whatever has it goes before everything that has not, the largest first. */
const FIRST_TO_GO = "1000";
const LAST_TO_GO = "0";

export interface GuestProcesses {
  /** Marked to go first. The idle first stub is among them: later ones inherit the mark from it. */
  readonly guests: number;
  readonly agents: number;
}

/**
 * Marks the processes of a group. Preconditions: the agent runs, so that its stub is known by the program that it has mapped.
 * Raising a mark needs no privilege, and taking it back none as long as nobody with CAP_SYS_RESOURCE has set it.
 */
export function sacrificeGuestsFirst(list: () => readonly number[]): GuestProcesses {
  const seen = new Map<number, "gvisor" | "agent" | "guest">();
  // Again until nothing is new: what was forked from the first stub before that one had its mark.
  for (let fresh = list(); fresh.length > 0; fresh = list().filter((pid) => !seen.has(pid))) {
    for (const pid of fresh) {
      const kind = ifThere(() => kindOf(readlinkSync(`/proc/${pid}/exe`), readFileSync(`/proc/${pid}/maps`, "utf8"))) ?? "guest";
      seen.set(pid, kind);
      if (kind === "guest") mark(pid, FIRST_TO_GO);
      // After a restore it was forked from a stub that had the mark.
      if (kind === "agent") mark(pid, LAST_TO_GO);
    }
  }
  const count = (wanted: string) => [...seen.values()].filter((kind) => kind === wanted).length;
  return { guests: count("guest"), agents: count("agent") };
}

/** A stub was forked from gVisor's kernel, so it has the same program, but not one page of it is mapped. */
export function kindOf(program: string, maps: string): "gvisor" | "agent" | "guest" {
  const files = new Set(maps.split("\n").map((line) => line.slice(line.indexOf("/"))));
  if (files.has(program)) return "gvisor";
  return [...files].some((file) => file.endsWith(`${AGENT_MOUNT_POINT}/bin/node`)) ? "agent" : "guest";
}

/** Those that `sacrificeGuestsFirst` has spared: gVisor's own and the agent's. */
export function sparedProcesses(pids: readonly number[]): number[] {
  return pids.filter((pid) => ifThere(() => readFileSync(`/proc/${pid}/oom_score_adj`, "utf8").trim()) === LAST_TO_GO);
}

/**
 * Sets the niceness of every thread of these processes: within their group, whoever has a lower one gets its turn first. What it
 * was is not kept: 0 is what gVisor has by itself, give or take one. Does nothing where the host does not permit it.
 */
export function setNiceness(pids: readonly number[], niceness: number): void {
  for (const pid of pids) {
    for (const thread of ifThere(() => readdirSync(`/proc/${pid}/task`)) ?? []) {
      try {
        setPriority(Number(thread), niceness);
      } catch {
        // Ended, or not permitted.
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
