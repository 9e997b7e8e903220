import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { runCommand, SubprocessError } from "@skerry/base";

const PAUSE_MS = 50;

/**
 * Unmounts everything at or below a folder, innermost first, so that the folder can be deleted safely. Waits while a mount is busy, at most
 * `limitMs`: a process that was killed may be ending, and one that is just starting may look at it.
 */
export async function unmountBelow(dir: string, limitMs = 30_000): Promise<void> {
  const deadline = performance.now() + limitMs;
  const table = await readFile("/proc/self/mountinfo", "utf8");
  const mounted = table
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "")
    .filter((path) => `${path}/`.startsWith(`${dir}/`));
  for (const path of mounted.reverse()) await unmountPatiently(path, deadline);
}

async function unmountPatiently(path: string, deadline: number): Promise<void> {
  for (;;) {
    try {
      await runCommand("umount", [path]);
      return;
    } catch (error) {
      if (!isBusy(error) || performance.now() > deadline) throw error;
    }
    await sleep(PAUSE_MS);
  }
}

const isBusy = (error: unknown) => error instanceof SubprocessError && /\bbusy\b/.test(error.stderr);
