// The only importer of node:child_process: programs that run for long, with streams. Those that are waited for are started without it.
// Argument arrays, an explicit environment, a time limit, bounded output, and an end for the whole process group.

import { type ChildProcess, spawn } from "node:child_process";
import type { Writable } from "node:stream";
import { type Program, type ProgramEnd, startProgram } from "./child-programs.ts";

export interface RunOptions {
  /** Whole environment of the child; nothing is inherited. Default: only PATH, HOME and LANG of a plain system. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Milliseconds until the process group gets SIGKILL. Default 60,000. */
  readonly timeoutMs?: number;
  /** Bytes of stdout and of stderr that are kept; what is over is dropped from the front of stderr, and is an error on stdout. Default 1 MiB. */
  readonly maxOutputBytes?: number;
  readonly input?: string | Uint8Array;
  readonly signal?: AbortSignal;
  /** Descriptors handed on as 3, 4, … */
  readonly extraFds?: readonly number[];
  /** Send stdout and stderr to this descriptor instead of collecting them: for children that leave processes behind. */
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
  /** No field of its own: a log line has the end of it in the message, and not a megabyte. */
  get stderr(): string {
    return this.#stderr;
  }
}

const PLAIN_ENV = { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", HOME: "/root", LANG: "C.UTF-8" };

/** Runs a program to its end. Throws SubprocessError when it fails, cannot start or takes too long. */
export async function runCommand(command: string, args: readonly string[], options: RunOptions = {}): Promise<RunResult> {
  const maxBytes = options.maxOutputBytes ?? 1024 * 1024;
  const stdout = new Tail(maxBytes);
  const stderr = new Tail(maxBytes);
  const child = await start(command, args, options);
  child.stdout?.on("data", (chunk: Buffer) => stdout.push(chunk));
  child.stderr?.on("data", (chunk: Buffer) => stderr.push(chunk));
  // A child may end without reading its input; its exit code says what matters.
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
  /** True: the child gets a session of its own and outlives us. */
  readonly detached?: boolean;
}

/** Starts a long-lived program; the caller owns it from here on. */
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

/** Its end, and that of its output: a child of its own may go on writing to that. */
async function ended(child: Program): Promise<ProgramEnd> {
  const outputs = [child.stdout, child.stderr].map((stream) => stream && new Promise((resolve) => stream.once("close", resolve)));
  const [end] = await Promise.all([child.ended, ...outputs]);
  return end;
}

/** Also those that it has left behind in its group. */
function killGroup({ pid }: Program): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // Already gone.
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
