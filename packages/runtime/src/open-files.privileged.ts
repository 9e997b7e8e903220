import { readFileSync, statSync } from "node:fs";
import { errnoOf } from "@skerry/base";

/** Open files of a process; undefined when it has ended, and on kernels before 6.2, which count them only one by one. */
export function countOpenFiles(pid: number): number | undefined {
  try {
    return statSync(`/proc/${pid}/fd`).size || undefined;
  } catch (error) {
    if (["ENOENT", "ESRCH"].includes(errnoOf(error) ?? "")) return undefined;
    throw error;
  }
}

/** How many files a process may have open. Throws when it has ended. */
export function openFilesLimit(pid: number): number {
  const limits = readFileSync(`/proc/${pid}/limits`, "utf8");
  return Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? Number.POSITIVE_INFINITY);
}
