import { readFileSync } from "node:fs";

/** The kernel's default limit. */
const USUAL_LIMIT = 1024;

/** Returns how many descriptors this process may open. Node raises its soft limit to the hard limit at startup. */
export function openFilesLimit(): number {
  try {
    return parseOpenFiles(readFileSync("/proc/self/limits", "utf8"));
  } catch {
    return USUAL_LIMIT;
  }
}

/** Reads the soft limit, which is the effective one, from the text of /proc/self/limits. */
export function parseOpenFiles(limits: string): number {
  const soft = /^Max open files\s+(\d+|unlimited)\s/m.exec(limits)?.[1];
  if (soft === undefined) return USUAL_LIMIT;
  return soft === "unlimited" ? Number.POSITIVE_INFINITY : Number(soft);
}
