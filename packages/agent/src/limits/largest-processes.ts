// Kills the processes that hold the most memory or files. The node asks for it when the sandbox exceeds a limit. The code is
// synchronous and small, because it has to work while all other processes compete for the same CPUs and memory.

import { closeSync, openSync, readdirSync, readSync } from "node:fs";

const PAGE_BYTES = 4096;
/** A killed process may take a moment to end. For at most this long its memory already counts as free. */
const DYING_MS = 2_000;
/** A process is killed for its files only if it holds at least this fraction (1/100) of the files to close. */
const WORTHWHILE = 100;

export interface KilledProcess {
  readonly pid: number;
  readonly name: string;
  /** Its resident memory. */
  readonly bytes: number;
}

/** Reused for each process, which halves the time for reading all of them. */
const buffer = Buffer.alloc(1024);
const dying = new Map<number, number>();

/**
 * Kills the largest processes, never the agent, until the killed ones held `bytes`. If all of them together hold less, it kills none,
 * unless `insist` is set: the process that held the memory may just have ended, and the others are not to blame.
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

/** Kills the processes with the most open files, never the agent, until the killed ones held `files`. */
export function killWithMostFiles(files: number): KilledProcess[] {
  const counted = readProcesses().map((one) => ({ ...one, files: countFiles(one.pid) }));
  const killed: KilledProcess[] = [];
  let sum = 0;
  for (const { files: open, ...victim } of counted.sort((a, b) => b.files - a.files)) {
    // The remaining processes hold too few files each.
    if (sum >= files || open * WORTHWHILE < files) break;
    if (dying.has(victim.pid) || !kill(victim.pid)) continue;
    dying.set(victim.pid, performance.now());
    killed.push(victim);
    sum += open;
  }
  return killed;
}

/** The size of the descriptor table: about the number of open files, at the cost of one small file instead of a listing. */
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

/** Undefined when the process has ended. */
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

/** Name and resident memory, from /proc/PID/stat. The name may contain spaces and brackets. */
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
