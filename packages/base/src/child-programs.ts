// Runs programs for the daemon and waits for them, without a copy of the address space of the daemon (posix-spawn.ts).

import { accessSync, closeSync, constants as fs, openSync } from "node:fs";
import { Socket } from "node:net";
import { constants } from "node:os";
import { delimiter, join } from "node:path";
import { bindSpawnLibc, decodeStatus, posixSpawn, SpawnError, type SpawnLibc } from "./posix-spawn.ts";

const WNOHANG = 1;

let loading: Promise<SpawnLibc> | undefined;

function loadLibc(): Promise<SpawnLibc> {
  loading ??= import("koffi").then(({ default: koffi }) => {
    const lib = koffi.load("libc.so.6");
    return bindSpawnLibc(
      (signature) => lib.func(signature),
      (buffer) => koffi.address(buffer),
    );
  });
  return loading;
}

export interface ProgramEnd {
  readonly exitCode: number | null;
  readonly signalName: NodeJS.Signals | null;
}

export interface Program {
  readonly pid: number;
  /** Undefined when the output goes to `outputFd`. */
  readonly stdout: Socket | undefined;
  readonly stderr: Socket | undefined;
  readonly stdin: Socket | undefined;
  readonly ended: Promise<ProgramEnd>;
}

export interface ProgramRequest {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string | undefined;
  /** Whether standard input is a pipe; otherwise it is empty. */
  readonly hasInput: boolean;
  /** Descriptor for stdout and stderr. Default: pipes. */
  readonly outputFd?: number | undefined;
  /** Become descriptors 3, 4, … of the program. */
  readonly extraFds: readonly number[];
}

/** Starts a program as the leader of a new session. Throws an error with the code of execve or of the search in PATH. */
export async function startProgram(request: ProgramRequest): Promise<Program> {
  const texts = [request.command, ...request.args, ...Object.entries(request.env).flat()];
  if (texts.some((text) => text.includes("\0"))) throw withCode(`spawn ${request.command}: a NUL byte in its arguments`, "EINVAL");
  const libc = await loadLibc();
  const path = findProgram(request.command, request.env.PATH ?? "");
  const theirs: number[] = [];
  const ours: Socket[] = [];
  let stdin: Socket | undefined;
  const kept = (fd: number) => {
    theirs.push(fd);
    return fd;
  };
  const output = (): number => {
    if (request.outputFd !== undefined) return request.outputFd;
    const [read, write] = pipe(libc);
    ours.push(new Socket({ fd: read, readable: true, writable: false }));
    return kept(write);
  };
  const input = (): number => {
    if (!request.hasInput) return kept(openSync("/dev/null", "r"));
    const [read, write] = pipe(libc);
    stdin = new Socket({ fd: write, readable: false, writable: true });
    return kept(read);
  };
  try {
    const stdio = [input(), output(), output(), ...request.extraFds];
    const { env, cwd } = request;
    const pid = posixSpawn(libc, { path, argv: [request.command, ...request.args], env, cwd, stdio, newSession: true });
    return { pid, stdin, stdout: ours[0], stderr: ours[1], ended: whenEnded(libc, pid) };
  } catch (error) {
    for (const socket of [stdin, ...ours]) socket?.destroy();
    throw error instanceof SpawnError ? withCode(`spawn ${request.command} ${error.errnoName}`, error.errnoName) : error;
  } finally {
    for (const fd of theirs) closeSync(fd);
  }
}

function pipe(libc: SpawnLibc): [read: number, write: number] {
  const fds = new Int32Array(2);
  if (libc.pipe2(new Uint8Array(fds.buffer), O_CLOEXEC) !== 0) throw withCode("no descriptors left for a pipe", "EMFILE");
  return [fds[0] ?? 0, fds[1] ?? 0];
}

/** Node.js has no constant for it. The value is the same on x86-64 and arm64. */
const O_CLOEXEC = 0o2000000;

function findProgram(command: string, path: string): string {
  if (command.includes("/")) return command;
  for (const dir of path.split(delimiter)) {
    const candidate = join(dir, command);
    if (isExecutable(candidate)) return candidate;
  }
  throw withCode(`spawn ${command} ENOENT`, "ENOENT");
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, fs.X_OK);
    return true;
  } catch {
    return false;
  }
}

function withCode(message: string, code: string): NodeJS.ErrnoException {
  return Object.assign(new Error(message), { code });
}

const awaited = new Map<number, (end: ProgramEnd) => void>();

/** Waits for each program by its pid, because Node.js waits for the other children of this process. */
function whenEnded(libc: SpawnLibc, pid: number): Promise<ProgramEnd> {
  if (!isListening) process.on("SIGCHLD", () => collect(libc));
  isListening = true;
  const ended = new Promise<ProgramEnd>((resolve) => awaited.set(pid, resolve));
  // The program may have ended before the listener was added.
  collect(libc);
  return ended;
}

let isListening = false;

function collect(libc: SpawnLibc): void {
  const status = new Int32Array(1);
  for (const [pid, resolve] of awaited) {
    if (libc.waitpid(pid, new Uint8Array(status.buffer), WNOHANG) !== pid) continue;
    awaited.delete(pid);
    const { exitCode, signal } = decodeStatus(status[0] ?? 0);
    resolve({ exitCode: exitCode ?? null, signalName: signal === undefined ? null : signalNameOf(signal) });
  }
}

function signalNameOf(signal: number): NodeJS.Signals {
  const found = Object.entries(constants.signals).find(([, number]) => number === signal)?.[0];
  return (found ?? `signal ${signal}`) as NodeJS.Signals;
}
