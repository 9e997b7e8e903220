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
  /** An absolute path. */
  readonly cwd: string;
  readonly pty: PtySize | undefined;
  readonly stdin: boolean;
  readonly processLimit: ProcessLimit;
  /** Path of tini, which reports why a program cannot run (exit code 127 or 126) even if the image has no shell. */
  readonly fallback: string;
}

/** The agent's ends of the pipes or the terminal of a new process. */
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

/** Whether a start failed at the process limit. `error` is a SpawnError, or the ConnectError that was made from it. */
export function isOutOfProcesses(error: unknown): boolean {
  const cause = error instanceof ConnectError ? error.cause : error;
  return cause instanceof SpawnError && cause.errnoName === "EAGAIN";
}

function launchWithPipes(request: LaunchRequest): Launched {
  const opened: number[] = [];
  const kept: number[] = [];
  try {
    return asUser(request.user, () => {
      // The pipes belong to the guest's user, so that the program may open its own /dev/stdout.
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

/** Errors of execve that concern the program and not the request. Such a start succeeds, and the process ends with an exit code. */
const PROGRAM_ERRORS: ReadonlySet<string> = new Set(["ENOENT", "EACCES", "ENOTDIR", "ELOOP", "ENAMETOOLONG"]);

// There are no checks before the attempt: system calls are expensive in gVisor, a start waits for each, and nearly all starts succeed.
function exec(request: LaunchRequest, stdio: SpawnTarget["stdio"]): number {
  const common = { env: request.env, cwd: request.cwd, stdio };
  const fallback = { ...common, path: request.fallback, argv: ["tini", "-s", "--", request.cmd, ...request.args] };
  const path = request.cmd.includes("/") ? request.cmd : findProgram(request);
  if (path === undefined) return spawnProgram(fallback);
  try {
    return spawnProgram({ ...common, path, argv: [request.cmd, ...request.args] });
  } catch (error) {
    if (!(error instanceof SpawnError)) throw error;
    // The child changes its directory before execve, and both fail with the same errors.
    assertEnterable(request.cwd);
    // As with execvp, the shell runs a script without `#!`.
    if (error.errnoName === "ENOEXEC") return spawnProgram({ ...common, path: "/bin/sh", argv: ["sh", path, ...request.args] });
    if (PROGRAM_ERRORS.has(error.errnoName)) return spawnProgram(fallback);
    throw error;
  }
}

// The lookup of execvp, with the PATH and the rights of the child. A relative PATH entry starts at the child's directory.
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
    // The start itself reports any other error.
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
 * Raises the OOM score of guests by half of the sandbox's memory, so that even small guests score above the agent. The agent cannot be
 * exempted everywhere, because that takes CAP_SYS_RESOURCE on the host. With E2B's value of 100 the small processes of a fork bomb
 * outlived the agent.
 */
const OOM_SCORE_ADJUSTMENT = 500;

let ownPriority: number | undefined;

/** Makes the kernel kill the guest before the agent when memory runs out, and resets its priority. Hosts differ in what they permit. */
export function adjust(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, String(OOM_SCORE_ADJUSTMENT));
  } catch {
    // The process has ended, or there is no /proc. Nothing depends on this setting.
  }
  try {
    ownPriority ??= getPriority();
    if (ownPriority !== 0) setPriority(pid, 0);
  } catch {
    // Not permitted. Then the agent has no raised priority that guests could inherit either.
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
