import { readFile } from "node:fs/promises";
import { runCommand } from "@skerry/base";

/** Unmounts everything at or below a folder, innermost first, so that the folder can be deleted safely. */
export async function unmountBelow(dir: string): Promise<void> {
  const table = await readFile("/proc/self/mountinfo", "utf8");
  const mounted = table
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "")
    .filter((path) => `${path}/`.startsWith(`${dir}/`));
  for (const path of mounted.reverse()) await runCommand("umount", [path]);
}
