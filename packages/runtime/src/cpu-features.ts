import { readFileSync } from "node:fs";

/** Features of the CPUs, as the kernel names them, sorted. They do not change while the machine runs. */
export function readCpuFeatures(): readonly string[] {
  features ??= parseCpuFeatures(readFileSync("/proc/cpuinfo", "utf8"));
  return features;
}

let features: readonly string[] | undefined;

/** Parses /proc/cpuinfo: `flags` on x86-64, `Features` on arm64. */
export function parseCpuFeatures(cpuinfo: string): readonly string[] {
  const line = /^(?:flags|Features)\s*:\s*(.*)$/m.exec(cpuinfo)?.[1] ?? "";
  return line
    .split(" ")
    .filter((word) => word !== "")
    .sort();
}
