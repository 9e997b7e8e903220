// The kernel reuses pids, so a record identifies a process by its pid, its start time and the boot. Only a process that matches all three
// is ever signalled.

import { readFile, rm } from "node:fs/promises";
import { readJsonFile, writeJsonFile } from "./json-file.ts";

export interface ProcessRecord {
  readonly pid: number;
  /** Clock ticks between boot and the start of the process. */
  readonly startTicks: number;
  readonly bootId: string;
}

/** The record of a running process. Undefined if there is none, or only a zombie. */
export async function describeProcess(pid: number): Promise<ProcessRecord | undefined> {
  let stat: string;
  try {
    stat = await readFile(`/proc/${pid}/stat`, "utf8");
  } catch {
    return undefined;
  }
  // The second field is the program's name in parentheses, which may contain any character.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  if (fields[0] === "Z" || fields[0] === "X") return undefined;
  const bootId = (await readFile("/proc/sys/kernel/random/boot_id", "utf8")).trim();
  return { pid, startTicks: Number(fields[19]), bootId };
}

export async function isAlive(record: ProcessRecord): Promise<boolean> {
  const now = await describeProcess(record.pid);
  return now !== undefined && now.startTicks === record.startTicks && now.bootId === record.bootId;
}

/** The process that the file names, if it still runs. */
export async function readLiveProcess(path: string): Promise<ProcessRecord | undefined> {
  const record = await readJsonFile<ProcessRecord>(path);
  return record !== undefined && (await isAlive(record)) ? record : undefined;
}

export async function writeProcessRecord(path: string, pid: number): Promise<void> {
  const record = await describeProcess(pid);
  if (record) await writeJsonFile(path, record);
}

export async function removeProcessRecord(path: string): Promise<void> {
  await rm(path, { force: true });
}
