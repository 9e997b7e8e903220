import { readFileSync } from "node:fs";
import { errnoOf } from "@skerry/base";

/**
 * When a process started, in clock ticks since boot (field 22 of /proc/PID/stat). Returns undefined when there is no process, or only a
 * zombie. Throws when the file cannot be read, for example without a free descriptor: "unknown" must never count as "gone".
 */
export function processStartTime(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name in the second field may contain spaces and brackets, so the fields are counted from its end.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" || fields[0] === "X" ? undefined : fields[19];
  } catch (error) {
    if (["ENOENT", "ESRCH"].includes(errnoOf(error) ?? "")) return undefined;
    throw error;
  }
}

export function isSameProcess(process: { pid: number; startTime: string } | undefined): boolean {
  return process !== undefined && processStartTime(process.pid) === process.startTime;
}
