// Commands of a runtime that a former process of ours has begun: they outlive it. One of them that goes on while the next process
// decides what becomes of a sandbox would start or freeze it behind its back.

import { readdirSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { PlatformError } from "@skerry/base";

/** As long as we would have waited for a pause ourselves. */
const PATIENCE_MS = 20_000;
const END_TIMEOUT_MS = 5_000;
const LOOK_MS = 20;
/** What a sandbox runs on: these are no commands, and stay. */
const LASTING: ReadonlySet<string> = new Set(["runsc-sandbox", "runsc-gofer"]);
/** What they begin is given back as a whole: nobody has to wait for them. */
const STARTS: ReadonlySet<string> = new Set(["run", "restore", "create"]);

interface LeftCommand {
  readonly pid: number;
  readonly args: readonly string[];
}

/** Throws PlatformError("runtime_failed") when one does not end. */
export async function endLeftCommands(stateDir: string): Promise<void> {
  for (const { pid, args } of leftCommands(stateDir)) if (args.some((arg) => STARTS.has(arg))) end(pid);
  if (await isQuiet(stateDir, PATIENCE_MS)) return;
  for (const { pid } of leftCommands(stateDir)) end(pid);
  if (await isQuiet(stateDir, END_TIMEOUT_MS)) return;
  throw new PlatformError("runtime_failed", "a command of a former process does not end");
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

/** [] for one that has ended. */
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
    // It ended by itself.
  }
}
