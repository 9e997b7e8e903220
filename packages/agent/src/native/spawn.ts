// Starting guest programs with posix_spawn: glibc makes the child with CLONE_VM|CLONE_VFORK, so the agent's address
// space is not copied (in gVisor that copy is most of the cost of fork), and the child's pid is the program's pid.
// stdout and stderr are true pipes, which Node's own spawn does not offer: `echo >/dev/stderr` works on a pipe only.

import { constants as fs } from "node:fs";
import { constants } from "node:os";
import { libc } from "./libc.ts";

/** The size of glibc's opaque structs on 64-bit Linux. */
const ACTIONS_BYTES = 80;
const ATTRIBUTES_BYTES = 336;
const SIGNAL_SET_BYTES = 128;

const SETSIGDEF = 0x04;
const SETSIGMASK = 0x08;
const SETSID = 0x80;

export interface SpawnTarget {
  readonly path: string;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Descriptors of the child by number: 0, 1 and 2; or the path of a terminal that becomes all three and the controlling one. */
  readonly stdio: readonly [number, number, number] | { readonly terminal: string };
}

export class SpawnError extends Error {
  readonly errnoName: string;
  constructor(errno: number) {
    const name = Object.entries(constants.errno).find(([, value]) => value === errno)?.[0] ?? `errno ${errno}`;
    super(`posix_spawn: ${name}`);
    this.name = "SpawnError";
    this.errnoName = name;
  }
}

/** Starts the program and returns its pid. Throws SpawnError when execve refuses it. */
export function spawnProgram(target: SpawnTarget): number {
  const c = libc();
  const actions = new Uint8Array(ACTIONS_BYTES);
  c.actionsInit(actions);
  try {
    addStdio(actions, target.stdio);
    c.actionsChdir(actions, target.cwd);
    const attributes = "terminal" in target.stdio ? ofLeader() : ofChild();
    const argv = stringVector(target.argv);
    const envp = stringVector(Object.entries(target.env).map(([name, value]) => `${name}=${value}`));
    const pid = new Int32Array(1);
    const errno = c.posixSpawn(new Uint8Array(pid.buffer), target.path, actions, attributes, argv.pointers, envp.pointers);
    keepReachable(argv.bytes, envp.bytes);
    if (errno !== 0) throw new SpawnError(errno);
    return pid[0] ?? 0;
  } finally {
    c.actionsDestroy(actions);
  }
}

/** The attributes are the same for all programs of a kind, and posix_spawn only reads them. */
function attributesOnce(extraFlags: number): () => Uint8Array {
  let made: Uint8Array | undefined;
  return () => {
    made ??= makeAttributes(SETSIGDEF | SETSIGMASK | extraFlags);
    return made;
  };
}

const ofChild = attributesOnce(0);
const ofLeader = attributesOnce(SETSID);

function makeAttributes(flags: number): Uint8Array {
  const c = libc();
  const attributes = new Uint8Array(ATTRIBUTES_BYTES);
  c.attributesInit(attributes);
  c.attributesFlags(attributes, flags);
  // Node.js ignores SIGPIPE; a guest program must not inherit that, nor a blocked signal.
  c.attributesSignalDefault(attributes, new Uint8Array(SIGNAL_SET_BYTES).fill(0xff));
  c.attributesSignalMask(attributes, new Uint8Array(SIGNAL_SET_BYTES));
  return attributes;
}

function addStdio(actions: Uint8Array, stdio: SpawnTarget["stdio"]): void {
  const c = libc();
  if ("terminal" in stdio) {
    // A session leader without a controlling terminal gets one by opening it.
    c.actionsOpen(actions, 0, stdio.terminal, fs.O_RDWR, 0);
    c.actionsDup2(actions, 0, 1);
    c.actionsDup2(actions, 0, 2);
    return;
  }
  for (const [target, fd] of stdio.entries()) c.actionsDup2(actions, fd, target);
}

// The kernel reads these through bare addresses, which the garbage collector does not see.
function keepReachable(...buffers: readonly Uint8Array[]): number {
  return buffers.reduce((total, buffer) => total + buffer.length, 0);
}

// A NULL-terminated char*[]; `bytes` has to stay reachable for as long as `pointers` is used.
function stringVector(strings: readonly string[]): { pointers: Uint8Array; bytes: Uint8Array } {
  const bytes = Buffer.from(strings.map((text) => `${text}\0`).join(""), "utf8");
  const pointers = new BigUint64Array(strings.length + 1);
  let position = bytes.length === 0 ? 0n : libc().address(bytes);
  for (const [index, text] of strings.entries()) {
    pointers[index] = position;
    position += BigInt(Buffer.byteLength(text) + 1);
  }
  return { pointers: new Uint8Array(pointers.buffer), bytes };
}
