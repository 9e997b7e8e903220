// Starts programs with posix_spawn. glibc creates the child with CLONE_VM|CLONE_VFORK and so does not copy the address space of the
// parent, unlike Node.js's spawn. In gVisor that copy is most of the cost of a start; a daemon of 200 MB spends 4 ms of its main thread on
// it. Callers pass the functions of glibc, because the agent and the daemon load glibc at different times.

import { constants as fs } from "node:fs";
import { errnoName } from "./error.ts";

/** The size of glibc's opaque structs on 64-bit Linux. */
const ACTIONS_BYTES = 80;
const ATTRIBUTES_BYTES = 336;
const SIGNAL_SET_BYTES = 128;

const SETSIGDEF = 0x04;
const SETSIGMASK = 0x08;
const SETSID = 0x80;

export interface SpawnLibc {
  posixSpawn(pid: Uint8Array, path: string, actions: Uint8Array, attributes: Uint8Array, argv: Uint8Array, envp: Uint8Array): number;
  actionsInit(actions: Uint8Array): number;
  actionsDup2(actions: Uint8Array, fd: number, target: number): number;
  actionsOpen(actions: Uint8Array, target: number, path: string, flags: number, mode: number): number;
  actionsChdir(actions: Uint8Array, path: string): number;
  actionsDestroy(actions: Uint8Array): number;
  attributesInit(attributes: Uint8Array): number;
  attributesFlags(attributes: Uint8Array, flags: number): number;
  attributesSignalDefault(attributes: Uint8Array, set: Uint8Array): number;
  attributesSignalMask(attributes: Uint8Array, set: Uint8Array): number;
  address(buffer: Uint8Array): bigint;
  pipe2(fds: Uint8Array, flags: number): number;
  waitpid(pid: number, status: Uint8Array, flags: number): number;
}

type Bind = (signature: string) => (...args: never[]) => unknown;

/** Binds the functions of glibc that start programs. `bind` returns the function with a C signature. */
export function bindSpawnLibc(bind: Bind, address: SpawnLibc["address"]): SpawnLibc {
  return {
    posixSpawn: bind(
      "int posix_spawn(void *pid, const char *path, void *actions, void *attributes, void *argv, void *envp)",
    ) as SpawnLibc["posixSpawn"],
    actionsInit: bind("int posix_spawn_file_actions_init(void *actions)") as SpawnLibc["actionsInit"],
    actionsDup2: bind("int posix_spawn_file_actions_adddup2(void *actions, int fd, int target)") as SpawnLibc["actionsDup2"],
    actionsOpen: bind(
      "int posix_spawn_file_actions_addopen(void *actions, int target, const char *path, int flags, unsigned int mode)",
    ) as SpawnLibc["actionsOpen"],
    actionsChdir: bind("int posix_spawn_file_actions_addchdir_np(void *actions, const char *path)") as SpawnLibc["actionsChdir"],
    actionsDestroy: bind("int posix_spawn_file_actions_destroy(void *actions)") as SpawnLibc["actionsDestroy"],
    attributesInit: bind("int posix_spawnattr_init(void *attributes)") as SpawnLibc["attributesInit"],
    attributesFlags: bind("int posix_spawnattr_setflags(void *attributes, short flags)") as SpawnLibc["attributesFlags"],
    attributesSignalDefault: bind("int posix_spawnattr_setsigdefault(void *attributes, void *set)") as SpawnLibc["attributesSignalDefault"],
    attributesSignalMask: bind("int posix_spawnattr_setsigmask(void *attributes, void *set)") as SpawnLibc["attributesSignalMask"],
    pipe2: bind("int pipe2(void *fds, int flags)") as SpawnLibc["pipe2"],
    waitpid: bind("int waitpid(int pid, void *status, int flags)") as SpawnLibc["waitpid"],
    address,
  };
}

export interface SpawnTarget {
  readonly path: string;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Default: the working directory of this process. */
  readonly cwd?: string | undefined;
  /**
   * Either the descriptors of the child from 0 on, each of which must be greater than their count. Or the path of a terminal, which
   * becomes 0, 1 and 2 and the controlling terminal of a new session.
   */
  readonly stdio: readonly number[] | { readonly terminal: string };
  readonly newSession?: boolean;
}

export class SpawnError extends Error {
  readonly errnoName: string;
  constructor(errno: number) {
    const name = errnoName(errno);
    super(`posix_spawn: ${name}`);
    this.name = "SpawnError";
    this.errnoName = name;
  }
}

/** Starts the program and returns its pid. Throws SpawnError when execve fails. */
export function posixSpawn(c: SpawnLibc, target: SpawnTarget): number {
  const actions = new Uint8Array(ACTIONS_BYTES);
  c.actionsInit(actions);
  try {
    addStdio(c, actions, target.stdio);
    if (target.cwd !== undefined) c.actionsChdir(actions, target.cwd);
    const attributes = attributesOf(c, target.newSession === true || "terminal" in target.stdio);
    const argv = stringVector(c, target.argv);
    const envp = stringVector(
      c,
      Object.entries(target.env).map(([name, value]) => `${name}=${value}`),
    );
    const pid = new Int32Array(1);
    const errno = c.posixSpawn(new Uint8Array(pid.buffer), target.path, actions, attributes, argv.pointers, envp.pointers);
    keepReachable(argv.bytes, envp.bytes);
    if (errno !== 0) throw new SpawnError(errno);
    return pid[0] ?? 0;
  } finally {
    c.actionsDestroy(actions);
  }
}

/** How a process ended. Exactly one of `exitCode` and `signal` is set. */
export interface ExitStatus {
  readonly exitCode: number | undefined;
  readonly signal: number | undefined;
  readonly coreDumped: boolean;
}

/** Decodes the status word of wait(2). */
export function decodeStatus(word: number): ExitStatus {
  const signal = word & 0x7f;
  if (signal === 0) return { exitCode: (word >> 8) & 0xff, signal: undefined, coreDumped: false };
  return { exitCode: undefined, signal, coreDumped: (word & 0x80) !== 0 };
}

/** Attributes by `newSession`. They are the same for all programs, and posix_spawn only reads them. */
const made = new Map<boolean, Uint8Array>();

function attributesOf(c: SpawnLibc, newSession: boolean): Uint8Array {
  let attributes = made.get(newSession);
  if (!attributes) {
    attributes = makeAttributes(c, SETSIGDEF | SETSIGMASK | (newSession ? SETSID : 0));
    made.set(newSession, attributes);
  }
  return attributes;
}

function makeAttributes(c: SpawnLibc, flags: number): Uint8Array {
  const attributes = new Uint8Array(ATTRIBUTES_BYTES);
  c.attributesInit(attributes);
  c.attributesFlags(attributes, flags);
  // Node.js ignores SIGPIPE. A program must inherit neither that nor a blocked signal.
  c.attributesSignalDefault(attributes, new Uint8Array(SIGNAL_SET_BYTES).fill(0xff));
  c.attributesSignalMask(attributes, new Uint8Array(SIGNAL_SET_BYTES));
  return attributes;
}

function addStdio(c: SpawnLibc, actions: Uint8Array, stdio: SpawnTarget["stdio"]): void {
  if ("terminal" in stdio) {
    // A session leader without a controlling terminal acquires the first one that it opens.
    c.actionsOpen(actions, 0, stdio.terminal, fs.O_RDWR, 0);
    c.actionsDup2(actions, 0, 1);
    c.actionsDup2(actions, 0, 2);
    return;
  }
  for (const [target, fd] of stdio.entries()) {
    if (fd < stdio.length) throw new Error(`descriptor ${fd} would be replaced before it is used`);
    c.actionsDup2(actions, fd, target);
  }
}

// The kernel reads these buffers through addresses that the garbage collector does not know.
function keepReachable(...buffers: readonly Uint8Array[]): number {
  return buffers.reduce((total, buffer) => total + buffer.length, 0);
}

// A NULL-terminated char*[]. `bytes` must stay reachable for as long as `pointers` is used.
function stringVector(c: SpawnLibc, strings: readonly string[]): { pointers: Uint8Array; bytes: Uint8Array } {
  const bytes = Buffer.from(strings.map((text) => `${text}\0`).join(""), "utf8");
  const pointers = new BigUint64Array(strings.length + 1);
  let position = bytes.length === 0 ? 0n : c.address(bytes);
  for (const [index, text] of strings.entries()) {
    pointers[index] = position;
    position += BigInt(Buffer.byteLength(text) + 1);
  }
  return { pointers: new Uint8Array(pointers.buffer), bytes };
}
