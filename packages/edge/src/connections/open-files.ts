import { readFileSync } from "node:fs";

/** Kernels start processes with this limit when nothing else was set. */
const USUAL_LIMIT = 1024;

/** How many descriptors this process may have open. Node raises its soft limit to the hard one when it starts. */
export function openFilesLimit(): number {
  try {
    return parseOpenFiles(readFileSync("/proc/self/limits", "utf8"));
  } catch {
    return USUAL_LIMIT;
  }
}

/** The soft limit, which is the one that applies, from the text of /proc/self/limits. */
export function parseOpenFiles(limits: string): number {
  const soft = /^Max open files\s+(\d+|unlimited)\s/m.exec(limits)?.[1];
  if (soft === undefined) return USUAL_LIMIT;
  return soft === "unlimited" ? Number.POSITIVE_INFINITY : Number(soft);
}
