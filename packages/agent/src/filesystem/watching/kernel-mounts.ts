// File systems in which the kernel shows itself. Their files change without a record, and there are many of them.

import { readFileSync } from "node:fs";

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

/** Where they are mounted, one character per byte; nothing when the root itself is in one: somebody means it. */
export function kernelMounts(root: string): ReadonlySet<string> {
  const mounts = new Set(parseKernelMounts(readMounts()));
  return [...mounts].some((path) => root === path || root.startsWith(`${path}/`)) ? new Set() : mounts;
}

/** Of the lines of /proc/self/mounts. */
export function parseKernelMounts(text: string): string[] {
  return text
    .split("\n")
    .map((line) => line.split(" "))
    .filter(([, path, type]) => path?.startsWith("/") && KERNEL_TYPES.has(type ?? ""))
    .map(([, path = ""]) => path.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8))));
}

function readMounts(): string {
  try {
    return readFileSync("/proc/self/mounts", "latin1");
  } catch {
    return "";
  }
}
