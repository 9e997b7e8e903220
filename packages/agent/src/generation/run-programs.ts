// Programs that the guest's root wants to be run when the generation changes. Whoever asked for the sandbox waits for them, so there is a
// limit to that; what they write and how they end is in a file of the sandbox.

import { closeSync, constants, openSync, rmSync, writeSync } from "node:fs";
import { basename } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { asError } from "@skerry/base";
import type { ExitStatus } from "@skerry/base/posix-spawn";
import { GENERATION_PROGRAMS_LIMIT_MS } from "@skerry/wire";
import { stderrLogger } from "../log.ts";
import { loadLibc } from "../native/libc.ts";
import type { Reaper } from "../native/reaper.ts";
import { spawnProgram } from "../native/spawn.ts";
import { adjust, isOutOfProcesses } from "../process/running/launch.ts";
import type { AgentState } from "../state.ts";
import { GENERATION_FILE } from "./generation.ts";

export const GENERATION_LOG = `${GENERATION_FILE}.log`;

/** Of one program; all together have GENERATION_PROGRAMS_LIMIT_MS. */
const PROGRAM_LIMIT_MS = 5_000;

interface Run {
  readonly state: AgentState;
  readonly reaper: Reaper;
  readonly env: Readonly<Record<string, string>>;
  /** The log, which is also their output. */
  readonly log: number;
  readonly nothing: number;
}

/** One after the other, as root. A failure of one is written down, and the next is run. */
export async function runPrograms(options: {
  readonly state: AgentState;
  readonly reaper: Reaper;
  readonly programs: readonly string[];
  readonly generation: string;
}): Promise<void> {
  const { state, reaper, programs, generation } = options;
  await loadLibc();
  const deadline = performance.now() + GENERATION_PROGRAMS_LIMIT_MS;
  const env = {
    PATH: state.path,
    HOME: "/root",
    USER: "root",
    LOGNAME: "root",
    ...state.environment(),
    SKERRY_GENERATION: generation,
  };
  const nothing = openSync("/dev/null", "r+");
  const log = openLog() ?? nothing;
  try {
    for (const path of programs) {
      const leftMs = Math.min(PROGRAM_LIMIT_MS, deadline - performance.now());
      const outcome =
        leftMs <= 0 ? "not run: there was no time left" : await runProgram(path, leftMs, { state, reaper, env, log, nothing });
      write(log, `${basename(path)}: ${outcome}\n`);
    }
  } finally {
    if (log !== nothing) closeSync(log);
    closeSync(nothing);
  }
}

/** Undefined where there is no room, or something in the way: the programs matter more. */
function openLog(): number | undefined {
  try {
    rmSync(GENERATION_LOG, { force: true });
    return openSync(GENERATION_LOG, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_APPEND, 0o600);
  } catch (error) {
    stderrLogger("there is no log of the hooks", error);
    return undefined;
  }
}

function write(log: number, text: string): void {
  try {
    writeSync(log, text);
  } catch {
    // The disk is full.
  }
}

async function runProgram(path: string, limitMs: number, { state, reaper, env, log, nothing }: Run): Promise<string> {
  const exit = Promise.withResolvers<ExitStatus>();
  let pid: number;
  try {
    const start = () => spawnProgram({ path, argv: [path], env, cwd: "/", stdio: [nothing, log, log], newSession: true });
    pid = state.processLimit().within(start, isOutOfProcesses);
  } catch (error) {
    return `not run: ${asError(error).message}`;
  }
  adjust(pid);
  reaper.watch(pid, exit.resolve);
  const timeout = new AbortController();
  const isLate = sleep(limitMs, true, { signal: timeout.signal }).catch(() => false);
  const ended = await Promise.race([exit.promise, isLate]);
  timeout.abort();
  if (typeof ended === "object") return describe(ended);
  // Its group: what it has started and not detached goes with it.
  killGroup(pid);
  await exit.promise;
  return "killed: it took too long";
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // Ended just now.
  }
}

function describe({ exitCode, signal }: ExitStatus): string {
  return exitCode === undefined ? `ended by signal ${signal}` : `exit code ${exitCode}`;
}
