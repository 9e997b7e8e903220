import { readFileSync } from "node:fs";

/** File systems whose answers come from this machine's kernel, gVisor's (`9p`, `dev`) among them. */
const LOCAL_TYPES: ReadonlySet<string> = new Set([
  "9p",
  "btrfs",
  "cgroup",
  "cgroup2",
  "dev",
  "devpts",
  "devtmpfs",
  "ext4",
  "mqueue",
  "nsfs",
  "overlay",
  "proc",
  "ramfs",
  "sysfs",
  "tmpfs",
  "xfs",
]);

/**
 * No mounted file system can keep a system call waiting for somebody else: for a server, or for a program in this sandbox, which
 * may itself wait for the agent.
 */
export function areMountsLocal(): boolean {
  try {
    return parseTypes(readFileSync("/proc/self/mounts", "latin1")).every((type) => LOCAL_TYPES.has(type));
  } catch {
    return false;
  }
}

/** Of the lines of /proc/self/mounts. */
export function parseTypes(text: string): string[] {
  return text.split("\n").flatMap((line) => line.split(" ")[2] ?? []);
}
