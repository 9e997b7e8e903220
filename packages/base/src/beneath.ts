// Opens and renames entries of a directory that someone else changes at the same time. No path can lead out of the directory: the kernel
// checks each step of it (openat2, Linux 5.6). Every call runs on the thread pool, because it may wait for a disk.

import { constants } from "node:fs";
import koffi from "koffi";
import { PlatformError } from "./error.ts";

const libc = koffi.load("libc.so.6");
const openat2Fn = libc.func("long syscall(long number, int folder, const uint8_t *path, const uint8_t *how, size_t size)");
const renameat2Fn = libc.func("int renameat2(int from_folder, const uint8_t *from, int to_folder, const uint8_t *to, unsigned int flags)");

/** The same on x86-64 and arm64. */
const SYS_OPENAT2 = 437;
const RESOLVE_NO_XDEV = 0x01;
const RESOLVE_NO_MAGICLINKS = 0x02;
const RESOLVE_NO_SYMLINKS = 0x04;
const RESOLVE_BENEATH = 0x08;
const RENAME_NOREPLACE = 1;
const O_CLOEXEC = 0o2000000;
/** The kernel asks for another attempt when a rename may have moved a part of the path. Then a guest renames without a pause. */
const ATTEMPTS = 128;

/** Opens nothing: the descriptor only names the entry, whatever its kind is. */
export const O_PATH = 0o10000000;

export interface BeneathOptions {
  /** Of `open`. Without O_PATH, a FIFO or device would be opened. */
  readonly flags: number;
  /** Default: links are followed as long as they stay in the folder. The flag O_NOFOLLOW concerns the last part of the path alone. */
  readonly followLinks?: boolean;
}

const ERRNO_NAMES: Readonly<Record<number, string>> = Object.fromEntries(
  Object.entries(koffi.os.errno).map(([name, value]) => [value as number, name]),
);

/**
 * Opens a path below the open directory `folder`, on the same file system. Returns a descriptor, which the caller closes.
 * Throws PlatformError("system_call_failed") whose cause has the errno: EXDEV for a path that leads out of the folder.
 */
export async function openBeneath(
  folder: number,
  path: string | Uint8Array,
  { flags, followLinks = true }: BeneathOptions,
): Promise<number> {
  const resolve = RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS | RESOLVE_BENEATH | (followLinks ? 0 : RESOLVE_NO_SYMLINKS);
  // struct open_how { u64 flags, mode, resolve }
  const how = new Uint8Array(new BigUint64Array([BigInt(flags | O_CLOEXEC), 0n, BigInt(resolve)]).buffer);
  const name = terminated(path);
  for (let attempt = 1; ; attempt += 1) {
    const { value, errno } = await inBackground(openat2Fn, [SYS_OPENAT2, folder, name, how, how.byteLength]);
    if (value >= 0) return value;
    if (errno !== koffi.os.errno.EAGAIN) fail("openat2", path, errno);
    if (attempt === ATTEMPTS) fail("openat2", path, koffi.os.errno.EXDEV ?? errno);
  }
}

export interface EntryOf {
  /** An open directory. */
  readonly folder: number;
  /** A name without "/". */
  readonly name: string | Uint8Array;
}

/** Renames an entry, and replaces nothing: an existing target is EEXIST. Follows no link. */
export async function renameWithoutReplacing(from: EntryOf, to: EntryOf): Promise<void> {
  const names = [from.folder, terminated(from.name), to.folder, terminated(to.name)] as const;
  const { value, errno } = await inBackground(renameat2Fn, [...names, RENAME_NOREPLACE]);
  if (value !== 0) fail("renameat2", to.name, errno);
}

/**
 * The path by which functions of Node.js reach an entry of an open directory. Nothing but the last part is looked up: a function that follows
 * no link in the last part (lstat, unlink, rmdir, rename, mkdir) can't leave the directory.
 */
export function entryPath({ folder, name }: EntryOf): Buffer {
  return Buffer.concat([Buffer.from(`/proc/self/fd/${folder}/`), Buffer.from(name)]);
}

/** The path by which functions of Node.js reach what a descriptor names. */
export function descriptorPath(fd: number): string {
  return `/proc/self/fd/${fd}`;
}

export const DIRECTORY = O_PATH | constants.O_DIRECTORY;

const terminated = (path: string | Uint8Array) => Buffer.concat([Buffer.from(path as Uint8Array), Buffer.alloc(1)]);

/** Reads the errno of a failure before other calls can change it. */
function inBackground(fn: typeof openat2Fn, args: readonly unknown[]): Promise<{ value: number; errno: number }> {
  return new Promise((resolve, reject) => {
    fn.async(...args, (error: Error | null, value: number) =>
      error ? reject(error) : resolve({ value: Number(value), errno: koffi.errno() }),
    );
  });
}

function fail(call: string, path: string | Uint8Array, errno: number): never {
  const name = ERRNO_NAMES[errno] ?? `errno ${errno}`;
  const cause: NodeJS.ErrnoException = new Error(`${call}: ${name}`);
  cause.code = name;
  throw new PlatformError("system_call_failed", `${call} failed on ${Buffer.from(path as Uint8Array).toString()}: ${name}`, { cause });
}
