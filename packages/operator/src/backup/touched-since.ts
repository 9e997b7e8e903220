import { runCommand } from "@skerry/base";

const LONGEST_MS = 24 * 3_600_000;

/** Whether anything at the path changed after the marker was written. A write through a loop device changes the file's time, too. */
export async function isTouchedSince(marker: string, path: string): Promise<boolean> {
  const { stdout } = await runCommand("find", [path, "-xdev", "-cnewer", marker, "-print", "-quit"], { timeoutMs: LONGEST_MS });
  return stdout.trim() !== "";
}
