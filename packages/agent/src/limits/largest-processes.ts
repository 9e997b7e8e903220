// Ending what takes the most memory, asked for by the node when this sandbox is over its limit. Synchronous and small: it
// has to work while every other process fights for the same processors and memory.

import { closeSync, openSync, readdirSync, readSync } from "node:fs";

const PAGE_BYTES = 4096;
/** Whoever was killed may take a moment to be gone. Until then its memory is as good as free, for no longer than this. */
const DYING_MS = 2_000;
/** Who has less than a hundredth of what is wanted is not worth ending for it. */
const WORTHWHILE = 100;

export interface KilledProcess {
  readonly pid: number;
  readonly name: string;
  /** Its resident memory. */
  readonly bytes: number;
}

/** Used again for each process: reading them all takes half the time that it takes with a string each. */
const buffer = Buffer.alloc(1024);
const dying = new Map<number, number>();

/**
 * Kills the largest processes, never the agent itself, until what they hold is `bytes`. When all of them hold less, none, unless
 * `insist` is set: whoever held it may have ended a moment ago, and the others would pay for it.
 */
export function killLargest({ bytes, insist }: { bytes: number; insist: boolean }): KilledProcess[] {
  const now = performance.now();
  const processes = readProcesses().sort((a, b) => b.bytes - a.bytes);
  const all = processes.reduce((sum, one) => sum + one.bytes, 0);
  if (all < bytes && !insist) return [];
  const killed: KilledProcess[] = [];
  let sum = 0;
  for (const victim of processes) {
    if (sum >= bytes || victim.bytes === 0) break;
    if (!dying.has(victim.pid)) {
      if (!kill(victim.pid)) continue;
      dying.set(victim.pid, now);
      killed.push(victim);
    }
    sum += victim.bytes;
  }
  return killed;
}

/** Kills those that have the most files open, never the agent itself, until it is `files` that they had; [] when nobody has any. */
export function killWithMostFiles(files: number): KilledProcess[] {
  const counted = readProcesses().map((one) => ({ ...one, files: countFiles(one.pid) }));
  const killed: KilledProcess[] = [];
  let sum = 0;
  for (const { files: open, ...victim } of counted.sort((a, b) => b.files - a.files)) {
    // Ending all that have a few each would not help.
    if (sum >= files || open * WORTHWHILE < files) break;
    if (dying.has(victim.pid) || !kill(victim.pid)) continue;
    dying.set(victim.pid, performance.now());
    killed.push(victim);
    sum += open;
  }
  return killed;
}

/** The size of its table, which is about as much and costs one small file instead of a listing. */
function countFiles(pid: number): number {
  return Number(/^FDSize:\s*(\d+)/m.exec(readText(`/proc/${pid}/status`) ?? "")?.[1] ?? 0);
}

function readProcesses(): KilledProcess[] {
  const now = performance.now();
  for (const [pid, killedAt] of dying) if (now - killedAt > DYING_MS) dying.delete(pid);
  const found: KilledProcess[] = [];
  for (const entry of readdirSync("/proc")) {
    const pid = Number(entry);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    const stat = readText(`/proc/${pid}/stat`);
    if (stat !== undefined) found.push({ pid, ...parseStat(stat) });
  }
  return found;
}

/** Undefined: it ended meanwhile. */
function readText(path: string): string | undefined {
  try {
    const fd = openSync(path, "r");
    try {
      return buffer.toString("latin1", 0, readSync(fd, buffer, 0, buffer.length, 0));
    } finally {
      closeSync(fd);
    }
  } catch {
    return undefined;
  }
}

/** Name and resident memory, from /proc/PID/stat. The name may hold spaces and brackets. */
export function parseStat(stat: string): { name: string; bytes: number } {
  const end = stat.lastIndexOf(")");
  const fields = stat.slice(end + 2).split(" ");
  return { name: stat.slice(stat.indexOf("(") + 1, end), bytes: Number(fields[21]) * PAGE_BYTES };
}

function kill(pid: number): boolean {
  try {
    process.kill(pid, "SIGKILL");
    return true;
  } catch {
    return false;
  }
}
