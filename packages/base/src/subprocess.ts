// Runs programs with argument arrays, an explicit environment, a time limit and bounded output, and kills the whole process group.
// This is the only module that imports node:child_process, and only for long-running programs with streams.

import { type ChildProcess, spawn } from "node:child_process";
import type { Writable } from "node:stream";
import { type Program, type ProgramEnd, startProgram } from "./child-programs.ts";

export interface RunOptions {
  /** The complete environment of the child, which inherits nothing. Default: PATH, HOME and LANG of a plain system. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Milliseconds until the process group is killed. Default 60,000. */
  readonly timeoutMs?: number;
  /** Limit of stdout and of stderr. More output drops the beginning of stderr, and is an error on stdout. Default 1 MiB. */
  readonly maxOutputBytes?: number;
  readonly input?: string | Uint8Array;
  readonly signal?: AbortSignal;
  /** Become descriptors 3, 4, … of the child. */
  readonly extraFds?: readonly number[];
  /** Descriptor for stdout and stderr, which are then not collected. For children that leave processes behind. */
  readonly outputFd?: number;
}

export interface RunResult {
  readonly stdout: string;
  readonly stderr: string;
}

export class SubprocessError extends Error {
  readonly command: string;
  readonly exitCode: number | null;
  readonly signalName: NodeJS.Signals | null;
  readonly timedOut: boolean;
  readonly #stderr: string;
  constructor(fields: {
    command: string;
    exitCode: number | null;
    signalName: NodeJS.Signals | null;
    stderr: string;
    timedOut: boolean;
    cause?: unknown;
  }) {
    const how = fields.timedOut ? "ran out of time" : `ended with ${fields.signalName ?? `exit code ${fields.exitCode}`}`;
    super(`${fields.command} ${how}: ${fields.stderr.trim().slice(-2000)}`, { cause: fields.cause });
    this.name = "SubprocessError";
    this.command = fields.command;
    this.exitCode = fields.exitCode;
    this.signalName = fields.signalName;
    this.#stderr = fields.stderr;
    this.timedOut = fields.timedOut;
  }
  /** Not a plain field, so that a log line contains the end of it in the message, and not a megabyte. */
  get stderr(): string {
    return this.#stderr;
  }
}

const PLAIN_ENV = { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", HOME: "/root", LANG: "C.UTF-8" };

/** Runs a program and waits for its end. Throws SubprocessError when the program fails, cannot start or exceeds its time limit. */
export async function runCommand(command: string, args: readonly string[], options: RunOptions = {}): Promise<RunResult> {
  const maxBytes = options.maxOutputBytes ?? 1024 * 1024;
  const stdout = new Tail(maxBytes);
  const stderr = new Tail(maxBytes);
  const child = await start(command, args, options);
  child.stdout?.on("data", (chunk: Buffer) => stdout.push(chunk));
  child.stderr?.on("data", (chunk: Buffer) => stderr.push(chunk));
  // A child may end without reading its input. Its exit code decides.
  child.stdin?.on("error", () => {});
  child.stdin?.end(options.input ?? "");

  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    killGroup(child);
  }, options.timeoutMs ?? 60_000);
  const onAbort = () => killGroup(child);
  options.signal?.addEventListener("abort", onAbort, { once: true });
  if (options.signal?.aborted) onAbort();
  try {
    const { exitCode, signalName } = await ended(child);
    if (exitCode !== 0) throw new SubprocessError({ command, exitCode, signalName, stderr: stderr.text(), timedOut });
    if (stdout.dropped) {
      throw new SubprocessError({ command, exitCode, signalName, stderr: `more than ${maxBytes} bytes of output`, timedOut });
    }
    return { stdout: stdout.text(), stderr: stderr.text() };
  } finally {
    clearTimeout(timer);
    options.signal?.removeEventListener("abort", onAbort);
  }
}

export interface SpawnOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly stdout?: number | "ignore" | "pipe";
  readonly stderr?: number | "ignore" | "pipe";
  readonly stdin?: "ignore" | "pipe" | Writable;
  /** True: the child gets a new session and outlives this process. */
  readonly detached?: boolean;
}

/** Starts a long-lived program, which the caller owns from then on. */
export function spawnCommand(command: string, args: readonly string[], options: SpawnOptions = {}): ChildProcess {
  return spawn(command, args, {
    cwd: options.cwd,
    env: { ...(options.env ?? PLAIN_ENV) },
    detached: options.detached ?? false,
    stdio: [options.stdin ?? "ignore", options.stdout ?? "ignore", options.stderr ?? "ignore"],
  });
}

async function start(command: string, args: readonly string[], options: RunOptions): Promise<Program> {
  try {
    return await startProgram({
      command,
      args,
      env: options.env ?? PLAIN_ENV,
      cwd: options.cwd,
      hasInput: options.input !== undefined,
      outputFd: options.outputFd,
      extraFds: options.extraFds ?? [],
    });
  } catch (cause) {
    throw new SubprocessError({ command, exitCode: null, signalName: null, stderr: String(cause), timedOut: false, cause });
  }
}

/** Waits for the end of the child and of its output, because processes that the child started may still write. */
async function ended(child: Program): Promise<ProgramEnd> {
  const outputs = [child.stdout, child.stderr].map((stream) => stream && new Promise((resolve) => stream.once("close", resolve)));
  const [end] = await Promise.all([child.ended, ...outputs]);
  return end;
}

/** Kills the child and every process that it left behind in its group. */
function killGroup({ pid }: Program): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The group has ended.
  }
}

/** Keeps the last bytes of a stream. */
class Tail {
  readonly #max: number;
  #chunks: Buffer[] = [];
  #size = 0;
  dropped = false;
  constructor(max: number) {
    this.#max = max;
  }
  push(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    while (this.#size > this.#max && this.#chunks.length > 1) {
      this.#size -= this.#chunks.shift()?.length ?? 0;
      this.dropped = true;
    }
    if (this.#size > this.#max) this.dropped = true;
  }
  text(): string {
    return Buffer.concat(this.#chunks).toString("utf8");
  }
}
