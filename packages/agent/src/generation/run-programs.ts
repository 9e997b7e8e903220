// Runs the hook programs when the generation changes. The client that asked for the sandbox waits for them, so their time is limited.
// Their output and exit codes go to a log file in the sandbox.

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

/** Time limit of one program. All programs together have GENERATION_PROGRAMS_LIMIT_MS. */
const PROGRAM_LIMIT_MS = 5_000;

interface Run {
  readonly state: AgentState;
  readonly reaper: Reaper;
  readonly env: Readonly<Record<string, string>>;
  /** Descriptor of the log file, which also receives the output of the programs. */
  readonly log: number;
  readonly devNull: number;
}

/** Runs the programs one after the other, as root. A failure is logged, and the next program runs. */
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
  const devNull = openSync("/dev/null", "r+");
  const log = openLog() ?? devNull;
  try {
    for (const path of programs) {
      const leftMs = Math.min(PROGRAM_LIMIT_MS, deadline - performance.now());
      const outcome =
        leftMs <= 0 ? "not run: there was no time left" : await runProgram(path, leftMs, { state, reaper, env, log, devNull });
      write(log, `${basename(path)}: ${outcome}\n`);
    }
  } finally {
    if (log !== devNull) closeSync(log);
    closeSync(devNull);
  }
}

/** Undefined when the disk is full or another file is in the way. The programs run anyway. */
function openLog(): number | undefined {
  try {
    rmSync(GENERATION_LOG, { force: true });
    return openSync(GENERATION_LOG, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_APPEND, 0o600);
  } catch (error) {
    stderrLogger("the agent could not create the log of the hooks", error);
    return undefined;
  }
}

function write(log: number, text: string): void {
  try {
    writeSync(log, text);
  } catch {
    // The disk is full. The programs run anyway.
  }
}

async function runProgram(path: string, limitMs: number, { state, reaper, env, log, devNull }: Run): Promise<string> {
  const exit = Promise.withResolvers<ExitStatus>();
  let pid: number;
  try {
    const start = () => spawnProgram({ path, argv: [path], env, cwd: "/", stdio: [devNull, log, log], newSession: true });
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
  // Kill the process group, which includes children that were not detached.
  killGroup(pid);
  await exit.promise;
  return "killed: it took too long";
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The process group has ended by now.
  }
}

function describe({ exitCode, signal }: ExitStatus): string {
  return exitCode === undefined ? `ended by signal ${signal}` : `exit code ${exitCode}`;
}
