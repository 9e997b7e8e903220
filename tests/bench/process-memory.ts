import { readdirSync, readFileSync } from "node:fs";

/**
 * MiB of the processes whose command line or cgroup matches, each page shared between processes counted in parts (PSS).
 * Other programs don't disturb it, but it misses what the kernel holds for them.
 */
export function processMemoryMiB(belongs: RegExp): number {
  let kib = 0;
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const text = (file: string) => readFileSync(`/proc/${pid}/${file}`, "utf8");
      if (!belongs.test(text("cmdline").replaceAll("\0", " ")) && !belongs.test(text("cgroup"))) continue;
      kib += Number(/^Pss:\s+(\d+) kB/m.exec(text("smaps_rollup"))?.[1] ?? 0);
    } catch {
      // It ended while we looked.
    }
  }
  return kib / 1024;
}
