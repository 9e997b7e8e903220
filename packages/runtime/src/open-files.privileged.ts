import { readFileSync, statSync } from "node:fs";
import { errnoOf } from "@skerry/base";

/** Number of open files of a process; undefined when it has ended. Also undefined before Linux 6.2, which does not report the number. */
export function countOpenFiles(pid: number): number | undefined {
  try {
    return statSync(`/proc/${pid}/fd`).size || undefined;
  } catch (error) {
    if (["ENOENT", "ESRCH"].includes(errnoOf(error) ?? "")) return undefined;
    throw error;
  }
}

/** Limit of open files of a process. Throws when it has ended. */
export function openFilesLimit(pid: number): number {
  const limits = readFileSync(`/proc/${pid}/limits`, "utf8");
  return Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? Number.POSITIVE_INFINITY);
}
