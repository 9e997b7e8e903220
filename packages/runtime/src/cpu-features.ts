import { readFileSync } from "node:fs";

/** Features of this machine's processors as the kernel names them, in order. The same for the life of the machine. */
export function readCpuFeatures(): readonly string[] {
  features ??= parseCpuFeatures(readFileSync("/proc/cpuinfo", "utf8"));
  return features;
}

let features: readonly string[] | undefined;

/** From the text of /proc/cpuinfo: `flags` on x86-64, `Features` on arm64. */
export function parseCpuFeatures(cpuinfo: string): readonly string[] {
  const line = /^(?:flags|Features)\s*:\s*(.*)$/m.exec(cpuinfo)?.[1] ?? "";
  return line
    .split(" ")
    .filter((word) => word !== "")
    .sort();
}
