// What the agent needs to know about mounted file systems: whether they block, show the kernel's state, or change unnoticed.

import { readFileSync } from "node:fs";

/** File systems that the host's kernel answers by itself. gVisor's own types (`9p`, `dev`) are among them. */
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

/** File systems that show the kernel's state. They hold many files, which change without an inotify event. */
const KERNEL_TYPES: ReadonlySet<string> = new Set([
  "proc",
  "sysfs",
  "cgroup",
  "cgroup2",
  "devpts",
  "securityfs",
  "debugfs",
  "tracefs",
  "bpf",
]);

/** File systems on which inotify reports only local changes, by the type number of statfs(2). */
const NETWORK_TYPES: ReadonlyMap<number, string> = new Map([
  [0x6969, "NFS"],
  [0xff534d42, "CIFS"],
  [0x517b, "SMB"],
  [0xfe534d42, "SMB2"],
  [0x65735546, "FUSE"],
]);

export interface Mount {
  /** One character per byte. */
  readonly path: string;
  readonly type: string;
}

/**
 * Whether no mounted file system can block a system call of the agent. A network server can, and so can a FUSE program in this
 * sandbox, which may itself wait for the agent.
 */
export function areMountsLocal(): boolean {
  return readMounts()?.every(({ type }) => LOCAL_TYPES.has(type)) ?? false;
}

/**
 * The mount points of kernel file systems, with one character per byte, for a recursive watcher to skip. Empty when `root` itself is
 * in one: then the client asked for it.
 */
export function kernelMounts(root: string): ReadonlySet<string> {
  const paths = (readMounts() ?? []).filter(({ type }) => KERNEL_TYPES.has(type)).map(({ path }) => path);
  return paths.some((path) => root === path || root.startsWith(`${path}/`)) ? new Set() : new Set(paths);
}

/** `type` comes from statfs(2); some systems report it as a signed number. */
export function isNetworkFileSystem(type: number): boolean {
  return NETWORK_TYPES.has(type >>> 0);
}

/** Parses /proc/self/mounts. */
export function parseMounts(text: string): Mount[] {
  return text
    .split("\n")
    .map((line) => line.split(" "))
    .flatMap(([, path, type]) => (path?.startsWith("/") && type ? { path: unescapePath(path), type } : []));
}

function unescapePath(path: string): string {
  return path.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}

/** Undefined when /proc is not mounted. */
function readMounts(): Mount[] | undefined {
  try {
    return parseMounts(readFileSync("/proc/self/mounts", "latin1"));
  } catch {
    return undefined;
  }
}
