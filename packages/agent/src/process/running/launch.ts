// From a Start request to a running program: environment, working directory, program lookup, descriptors, spawn.

import { accessSync, closeSync, constants, openSync, statSync, writeFileSync } from "node:fs";
import { getPriority, setPriority } from "node:os";
import { posix } from "node:path";
import { Code, ConnectError } from "@connectrpc/connect";
import { asError, errnoOf } from "@skerry/base";
import { SpawnError, type SpawnTarget } from "@skerry/base/posix-spawn";
import type { User } from "../../accounts/accounts.ts";
import type { ProcessLimit } from "../../limits/process-limit.ts";
import { asUser } from "../../native/credentials.ts";
import { LibcError, libc } from "../../native/libc.ts";
import { openPty, type PtySize } from "../../native/pty.ts";
import { spawnProgram } from "../../native/spawn.ts";

const O_CLOEXEC = 0o2000000;

export interface LaunchRequest {
  readonly user: User;
  readonly cmd: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Absolute already. */
  readonly cwd: string;
  readonly pty: PtySize | undefined;
  readonly stdin: boolean;
  readonly processLimit: ProcessLimit;
  /** tini, which says why a program cannot be run (exit code 127 or 126) without a shell in the image. */
  readonly fallback: string;
}

/** Our ends of the new process's descriptors. */
export type Launched =
  | { readonly kind: "pipes"; readonly pid: number; readonly stdin: number | undefined; readonly stdout: number; readonly stderr: number }
  | { readonly kind: "pty"; readonly pid: number; readonly master: number };

export function launch(request: LaunchRequest): Launched {
  refuseNul(request);
  const { pty } = request;
  const start = () => (pty === undefined ? launchWithPipes(request) : launchWithPty(request, pty));
  const launched = request.processLimit.within(start, isOutOfProcesses);
  adjust(launched.pid);
  return launched;
}

/** Whether a start failed for want of processes: an error of posix_spawn, or what became of it. */
export function isOutOfProcesses(error: unknown): boolean {
  const cause = error instanceof ConnectError ? error.cause : error;
  return cause instanceof SpawnError && cause.errnoName === "EAGAIN";
}

function launchWithPipes(request: LaunchRequest): Launched {
  const opened: number[] = [];
  const kept: number[] = [];
  try {
    return asUser(request.user, () => {
      // Made as the guest's user, so that the program may open its own /dev/stdout again.
      const [stdout, childStdout] = pipe(opened);
      const [stderr, childStderr] = pipe(opened);
      const [childStdin, stdin] = request.stdin ? pipe(opened) : [devNull(), undefined];
      const pid = exec(request, [childStdin, childStdout, childStderr]);
      kept.push(stdout, stderr, ...(stdin === undefined ? [] : [stdin]));
      return { kind: "pipes", pid, stdin, stdout, stderr };
    });
  } catch (error) {
    throw startError(error, request);
  } finally {
    for (const fd of opened) if (!kept.includes(fd)) closeSync(fd);
  }
}

function launchWithPty(request: LaunchRequest, size: PtySize): Launched {
  let master: number | undefined;
  try {
    return asUser(request.user, () => {
      const pty = openPty(size);
      master = pty.master;
      return { kind: "pty", pid: exec(request, { terminal: pty.terminal }), master: pty.master };
    });
  } catch (error) {
    if (master !== undefined) closeSync(master);
    throw startError(error, request);
  }
}

/** Errors of execve that are about the program, not about the request: such a start ends with a status. */
const PROGRAM_ERRORS: ReadonlySet<string> = new Set(["ENOENT", "EACCES", "ENOTDIR", "ELOOP", "ENAMETOOLONG"]);

// Nothing is looked at before the attempt: a start waits for each system call, which gVisor makes dear, and nearly all succeed.
function exec(request: LaunchRequest, stdio: SpawnTarget["stdio"]): number {
  const common = { env: request.env, cwd: request.cwd, stdio };
  const fallback = { ...common, path: request.fallback, argv: ["tini", "-s", "--", request.cmd, ...request.args] };
  const path = request.cmd.includes("/") ? request.cmd : findProgram(request);
  if (path === undefined) return spawnProgram(fallback);
  try {
    return spawnProgram({ ...common, path, argv: [request.cmd, ...request.args] });
  } catch (error) {
    if (!(error instanceof SpawnError)) throw error;
    // The child changes its directory before it becomes the program, and both fail with the same errors.
    assertEnterable(request.cwd);
    // A script without `#!` is the shell's, as execvp has it.
    if (error.errnoName === "ENOEXEC") return spawnProgram({ ...common, path: "/bin/sh", argv: ["sh", path, ...request.args] });
    if (PROGRAM_ERRORS.has(error.errnoName)) return spawnProgram(fallback);
    throw error;
  }
}

// execvp's lookup, with the child's PATH and the child's rights; a relative PATH entry counts from the child's directory.
function findProgram(request: LaunchRequest): string | undefined {
  if (request.cmd === "") return undefined;
  const folders = (request.env.PATH ?? "/bin:/usr/bin").split(":");
  return folders.map((folder) => posix.join(folder, request.cmd)).find((path) => isExecutable(posix.resolve(request.cwd, path)));
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function assertEnterable(cwd: string): void {
  if (!statSync(cwd).isDirectory()) throw new Error(`chdir ${cwd}: not a directory`);
  try {
    accessSync(cwd, constants.X_OK);
  } catch (cause) {
    throw new Error(`chdir ${cwd}: permission denied`, { cause });
  }
}

function exists(path: string): boolean {
  try {
    statSync(path);
    return true;
  } catch (error) {
    // Anything else is for the start itself to say.
    return errnoOf(error) !== "ENOENT";
  }
}

let nullFd: number | undefined;

function devNull(): number {
  nullFd ??= openSync("/dev/null", constants.O_RDWR);
  return nullFd;
}

function pipe(opened: number[]): [read: number, write: number] {
  const fds = new Int32Array(2);
  if (libc().pipe2(new Uint8Array(fds.buffer), O_CLOEXEC) !== 0) throw new LibcError("pipe2");
  const [read = -1, write = -1] = fds;
  opened.push(read, write);
  return [read, write];
}

/**
 * The agent itself can't be exempted everywhere (that takes CAP_SYS_RESOURCE on the host), so its children have to score above it
 * whatever their size: by half of the sandbox's memory. With E2B's 100 a fork bomb's small processes outlived the agent.
 */
const OOM_SCORE_ADJUSTMENT = 500;

let ownPriority: number | undefined;

/** Guests go before the agent when memory runs out, and never get its priority. Hosts differ in what they permit. */
export function adjust(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, String(OOM_SCORE_ADJUSTMENT));
  } catch {
    // Ended already, or no /proc: nothing depends on it.
  }
  try {
    ownPriority ??= getPriority();
    if (ownPriority !== 0) setPriority(pid, 0);
  } catch {
    // Not permitted: then the agent has no better priority to hand on either.
  }
}

function refuseNul(request: LaunchRequest): void {
  const texts = [request.cmd, request.cwd, ...request.args, ...Object.keys(request.env), ...Object.values(request.env)];
  if (texts.some((text) => text.includes("\0"))) {
    throw new ConnectError(`${failedStart(request).replaceAll("\0", "")}: a NUL byte in its arguments`, Code.InvalidArgument);
  }
}

function startError(error: unknown, request: LaunchRequest): ConnectError {
  if (!exists(request.cwd)) return new ConnectError(`cwd '${request.cwd}' does not exist`, Code.InvalidArgument);
  return new ConnectError(`${failedStart(request)}: ${asError(error).message}`, Code.InvalidArgument, undefined, undefined, error);
}

function failedStart({ cmd, args, cwd, pty }: LaunchRequest): string {
  const command = [cmd, ...args].join(" ");
  if (pty === undefined) return `error starting process '${command}'`;
  return `error starting pty with command '${command}' in dir '${cwd}' with '${pty.cols}' cols and '${pty.rows}' rows`;
}
