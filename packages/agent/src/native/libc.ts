// Calls of glibc that Node.js does not offer. This is the only file that knows C signatures. It is loaded late, because /health and
// /init do not need it. Code that needs it awaits `loadLibc()` first.

import { errnoName } from "@skerry/base";
import { bindSpawnLibc, type SpawnLibc } from "@skerry/base/posix-spawn";
import type koffiModule from "koffi";

export interface Libc extends SpawnLibc {
  /** A raw system call. Unlike glibc's wrappers, a raw credential call changes only the calling thread. */
  syscall(number: number, a: number, b: number, c: number): number;
  syscallPointer(number: number, a: number, pointer: Uint8Array): number;
  errno(): number;
  ioctl(fd: number, request: number, argument: Uint8Array): number;
  listxattr(path: string | Uint8Array, list: Uint8Array | null, size: number): number;
  getxattr(path: string | Uint8Array, name: string, value: Uint8Array | null, size: number): number;
  setxattr(path: string, name: string, value: Uint8Array, size: number, flags: number): number;
  removexattr(path: string, name: string): number;
  dup3(fd: number, target: number, flags: number): number;
  mallocTrim(keepBytes: number): number;
  read(fd: number, buffer: Uint8Array, size: number): number;
  inotifyInit1(flags: number): number;
  /** `path` is a byte string, because file names need not be UTF-8. It must end with a NUL. */
  inotifyAddWatch(fd: number, path: Uint8Array, mask: number): number;
  inotifyRmWatch(fd: number, wd: number): number;
}

let loading: Promise<void> | undefined;
let loaded: Libc | undefined;

export function loadLibc(): Promise<void> {
  loading ??= import("koffi").then(({ default: koffi }) => {
    loaded = bind(koffi);
  });
  return loading;
}

export function isLibcLoaded(): boolean {
  return loaded !== undefined;
}

export function libc(): Libc {
  if (!loaded) throw new Error("libc is used before loadLibc");
  return loaded;
}

/** A failed call of libc. `code` is the name of its errno, so `errnoOf` of base finds it. */
export class LibcError extends Error {
  readonly code: string;
  constructor(operation: string, errno = libc().errno()) {
    const code = errnoName(errno);
    super(`${operation}: ${code}`);
    this.name = "LibcError";
    this.code = code;
  }
}

function bind(koffi: typeof koffiModule): Libc {
  const lib = koffi.load("libc.so.6");
  return {
    ...bindSpawnLibc(
      (signature) => lib.func(signature),
      (buffer) => koffi.address(buffer),
    ),
    syscall: lib.func("long syscall(long number, long a, long b, long c)"),
    syscallPointer: lib.func("syscall", "long", ["long", "long", "void *"]),
    errno: () => koffi.errno(),
    ioctl: lib.func("int ioctl(int fd, unsigned long request, void *argument)"),
    listxattr: lib.func("long listxattr(const char *path, void *list, size_t size)"),
    getxattr: lib.func("long getxattr(const char *path, const char *name, void *value, size_t size)"),
    setxattr: lib.func("int setxattr(const char *path, const char *name, void *value, size_t size, int flags)"),
    removexattr: lib.func("int removexattr(const char *path, const char *name)"),
    dup3: lib.func("int dup3(int fd, int target, int flags)"),
    mallocTrim: lib.func("int malloc_trim(size_t keep)"),
    read: lib.func("long read(int fd, void *buffer, size_t size)"),
    inotifyInit1: lib.func("int inotify_init1(int flags)"),
    inotifyAddWatch: lib.func("int inotify_add_watch(int fd, void *path, unsigned int mask)"),
    inotifyRmWatch: lib.func("int inotify_rm_watch(int fd, int wd)"),
  };
}
