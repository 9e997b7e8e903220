import { readFileSync } from "node:fs";

/** The mount points below a directory, in the order in which they were mounted. The directory itself is none of them. */
export function mountsBelow(dir: string): string[] {
  return readFileSync("/proc/self/mounts", "utf8")
    .split("\n")
    .map((line) => (line.split(" ")[1] ?? "").replace(/\\(\d{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8))))
    .filter((path) => path.startsWith(`${dir}/`));
}
