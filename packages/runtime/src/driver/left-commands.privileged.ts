// Finds commands of a runtime that an earlier daemon started. They outlive the daemon. Such a command could start or freeze a sandbox
// while the new daemon decides about the sandbox, so the new daemon first waits for them or kills them.

import { readdirSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { PlatformError } from "@skerry/base";

/** How long a command may still run: as long as the daemon waits for a pause. */
const PATIENCE_MS = 20_000;
const END_TIMEOUT_MS = 5_000;
const LOOK_MS = 20;
/** Processes of a running sandbox, which are not commands. */
const LASTING: ReadonlySet<string> = new Set(["runsc-sandbox", "runsc-gofer"]);
/** Verbs that are killed at once, because recovery removes everything that they started. */
const STARTS: ReadonlySet<string> = new Set(["run", "restore", "create"]);

interface LeftCommand {
  readonly pid: number;
  readonly args: readonly string[];
}

/** Returns when no command of an earlier daemon runs. Throws PlatformError("runtime_failed") when one does not end. */
export async function endLeftCommands(stateDir: string): Promise<void> {
  for (const { pid, args } of leftCommands(stateDir)) if (args.some((arg) => STARTS.has(arg))) end(pid);
  if (await isQuiet(stateDir, PATIENCE_MS)) return;
  for (const { pid } of leftCommands(stateDir)) end(pid);
  if (await isQuiet(stateDir, END_TIMEOUT_MS)) return;
  throw new PlatformError("runtime_failed", "a runtime command of an earlier daemon does not end");
}

async function isQuiet(stateDir: string, timeoutMs: number): Promise<boolean> {
  const deadline = performance.now() + timeoutMs;
  while (leftCommands(stateDir).length > 0) {
    if (performance.now() > deadline) return false;
    await sleep(LOOK_MS);
  }
  return true;
}

function leftCommands(stateDir: string): LeftCommand[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((name) => ({ pid: Number(name), args: argsOf(name) }))
    .filter(({ args }) => args.includes(`--root=${stateDir}`) && !LASTING.has(basename(args[0] ?? "")));
}

/** The arguments of a process; [] when it has ended. */
function argsOf(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
  } catch {
    return [];
  }
}

function end(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // The process has ended.
  }
}
