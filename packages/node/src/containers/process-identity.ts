import { readFileSync } from "node:fs";
import { errnoOf } from "@skerry/base";

/**
 * When a process started, in clock ticks since boot (field 22 of /proc/PID/stat); undefined when there is none, or only its
 * remains. Throws when that can't be found out (no descriptor left): "unknown" must never count as "gone".
 */
export function processStartTime(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name in the second field may hold spaces and brackets: count from its end.
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
