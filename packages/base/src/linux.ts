// System calls that Node.js does not offer, called through koffi. Only files whose names end in `.privileged.ts` import this module.
// A call blocks the calling thread, for tens of microseconds to a few milliseconds. Functions with the suffix `InBackground` run on the
// thread pool instead, because they may wait for a disk.

import { closeSync, fsyncSync, openSync } from "node:fs";
import koffi from "koffi";
import { PlatformError } from "./error.ts";

const libc = koffi.load("libc.so.6");
const mountFn = libc.func("int mount(const char *source, const char *target, const char *type, unsigned long flags, const char *data)");
const umountFn = libc.func("int umount2(const char *target, int flags)");
const syscallFn = libc.func("long syscall(long number, ...)");
const lgetxattrFn = libc.func("long lgetxattr(const char *path, const char *name, _Out_ uint8_t *value, size_t size)");
const llistxattrFn = libc.func("long llistxattr(const char *path, _Out_ uint8_t *list, size_t size)");

// From linux/mount.h and asm-generic/unistd.h. The numbers are the same on x86-64 and arm64.
const SYS_OPEN_TREE = 428;
const SYS_MOVE_MOUNT = 429;
const SYS_MOUNT_SETATTR = 442;
const AT_FDCWD = -100;
const AT_EMPTY_PATH = 0x1000;
const OPEN_TREE_CLONE = 1;
const OPEN_TREE_CLOEXEC = 0o2000000;
const MOVE_MOUNT_F_EMPTY_PATH = 4;
const MOUNT_ATTR_IDMAP = 0x00100000n;
/** MOUNT_ATTR_RDONLY, NOSUID, NODEV and NOEXEC. */
const MOUNT_ATTR_READ_ONLY = 0xfn;
const MNT_DETACH = 2;

export const MS_RDONLY = 1;
export const MS_NOSUID = 2;
export const MS_NODEV = 4;
export const MS_REMOUNT = 32;
export const MS_BIND = 4096;

const ERRNO_NAMES: Readonly<Record<number, string>> = Object.fromEntries(
  Object.entries(koffi.os.errno).map(([name, value]) => [value as number, name]),
);

function fail(call: string, subject: string, errno = koffi.errno()): never {
  const name = ERRNO_NAMES[errno] ?? `errno ${errno}`;
  const cause: NodeJS.ErrnoException = new Error(`${call}: ${name}`);
  cause.code = name;
  throw new PlatformError("system_call_failed", `${call} failed on ${subject}: ${name}`, { cause });
}

export function mount(options: { source: string; target: string; type: string; flags?: number; data?: string }): void {
  const { source, target, type, flags = 0, data = "" } = options;
  if (mountFn(source, target, type, flags, data) !== 0) fail(`mount ${type}`, target);
}

/** Unmounts. With `detach` the mount disappears at once, and is released with its last user. Returns false when nothing is mounted there. */
export function unmount(target: string, options: { detach?: boolean } = {}): boolean {
  if (umountFn(target, options.detach ? MNT_DETACH : 0) === 0) return true;
  const errno = koffi.errno();
  if (errno === koffi.os.errno.EINVAL || errno === koffi.os.errno.ENOENT) return false;
  return fail("umount", target);
}

/** Runs a call on the thread pool. Reads the errno of a failure before other calls can change it. */
function inBackground(fn: typeof mountFn, args: readonly unknown[]): Promise<{ value: number; errno: number }> {
  return new Promise((resolve, reject) => {
    fn.async(...args, (error: Error | null, value: number) =>
      error ? reject(error) : resolve({ value: Number(value), errno: koffi.errno() }),
    );
  });
}

/** Like `mount`, on the thread pool. */
export async function mountInBackground(options: {
  source: string;
  target: string;
  type: string;
  flags?: number;
  data?: string;
}): Promise<void> {
  const { source, target, type, flags = 0, data = "" } = options;
  const { value, errno } = await inBackground(mountFn, [source, target, type, flags, data]);
  if (value !== 0) fail(`mount ${type}`, target, errno);
}

/** Like `unmount`, on the thread pool. The last unmount of a file system writes its dirty pages to the disk. */
export async function unmountInBackground(target: string, options: { detach?: boolean } = {}): Promise<boolean> {
  const { value, errno } = await inBackground(umountFn, [target, options.detach ? MNT_DETACH : 0]);
  if (value === 0) return true;
  if (errno === koffi.os.errno.EINVAL || errno === koffi.os.errno.ENOENT) return false;
  return fail("umount", target, errno);
}

const ioctlFn = libc.func("int ioctl(int fd, unsigned long request, _Inout_ uint8_t *argument)");

/** Returns the result of the call. The kernel may write into `argument`. */
export async function ioctlInBackground(options: { fd: number; request: number; argument?: Uint8Array; subject: string }): Promise<number> {
  const { fd, request, argument = null, subject } = options;
  const { value, errno } = await inBackground(ioctlFn, [fd, request, argument]);
  if (value < 0) fail(`ioctl 0x${request.toString(16)}`, subject, errno);
  return value;
}

const syncfsFn = libc.func("int syncfs(int fd)");

/** Writes all dirty pages of the file system of an open file to its disk. */
export async function syncFilesystemInBackground(fd: number, subject: string): Promise<void> {
  const { value, errno } = await inBackground(syncfsFn, [fd]);
  if (value !== 0) fail("syncfs", subject, errno);
}

const fallocateFn = libc.func("int fallocate64(int fd, int mode, int64_t offset, int64_t length)");
const FALLOC_FL_KEEP_SIZE = 1;

/**
 * Allocates disk space for the first `bytes` bytes of a file without writing them. With `keepSize` the length of the file stays the same.
 * Fails with EOPNOTSUPP on file systems without fallocate.
 */
export async function allocateInBackground(fd: number, room: { bytes: number; keepSize?: boolean; subject: string }): Promise<void> {
  const { value, errno } = await inBackground(fallocateFn, [fd, room.keepSize ? FALLOC_FL_KEEP_SIZE : 0, 0, room.bytes]);
  if (value !== 0) fail("fallocate", room.subject, errno);
}

const memfdFn = libc.func("int memfd_create(const char *name, unsigned int flags)");
const MFD_CLOEXEC = 1;

/** Opens a new file that exists in memory only, until it is closed. The caller closes it. */
export function openMemoryFile(name: string): number {
  const fd = memfdFn(name, MFD_CLOEXEC);
  return fd < 0 ? fail("memfd_create", name) : fd;
}

const lseekFn = libc.func("int64_t lseek(int fd, int64_t offset, int whence)");
const SEEK_DATA = 3;
const SEEK_HOLE = 4;

/** The offset of the next data, or of the next hole, at or after `offset`; undefined when there is none. */
export function seekDataOrHole(fd: number, offset: number, what: "data" | "hole"): number | undefined {
  const found = Number(lseekFn(fd, offset, what === "data" ? SEEK_DATA : SEEK_HOLE));
  if (found >= 0) return found;
  return koffi.errno() === koffi.os.errno.ENXIO ? undefined : fail("lseek", `descriptor ${fd}`);
}

/** Allocates disk space for the first `bytes` bytes of an open file, and extends the file to that length. A failure keeps what was allocated. */
export function allocate(fd: number, bytes: number): void {
  if (fallocateFn(fd, 0, 0, bytes) !== 0) fail("fallocate", `descriptor ${fd}`);
}

const mknodFn = libc.func("int mknod(const char *path, unsigned int mode, unsigned long device)");
const S_IFBLK = 0o060000;

/** Creates the node of a block device, for root only. An existing file stays as it is. */
export function makeBlockDeviceNode(path: string, { major, minor }: { major: number; minor: number }): void {
  const device = ((major & 0xfff) << 8) | (minor & 0xff) | ((minor & ~0xff) << 12);
  if (mknodFn(path, S_IFBLK | 0o600, device) === 0 || koffi.errno() === koffi.os.errno.EEXIST) return;
  fail("mknod", path);
}

/** Mounts a copy of the tree at `source` onto `target`, with its ids mapped by the user namespace behind `usernsFd` (Linux 5.12). */
export function mountIdmapped(options: { source: string; target: string; usernsFd: number }): void {
  const { source, target, usernsFd } = options;
  const tree = cloneMount(source, { attributes: MOUNT_ATTR_IDMAP, usernsFd });
  try {
    attachMount(tree, target);
  } finally {
    closeFd(tree);
  }
}

/** Returns a descriptor of a mount of `source` that is attached nowhere yet. The caller closes it. */
function cloneMount(source: string, about: { attributes: bigint; usernsFd?: number }): number {
  const tree = Number(syscallFn(SYS_OPEN_TREE, "int", AT_FDCWD, "str", source, "uint", (OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC) >>> 0));
  if (tree < 0) fail("open_tree", source);
  // struct mount_attr { u64 attr_set, attr_clr, propagation, userns_fd }
  const attr = new Uint8Array(new BigUint64Array([about.attributes, 0n, 0n, BigInt(about.usernsFd ?? 0)]).buffer);
  const size = attr.byteLength;
  const set = syscallFn(SYS_MOUNT_SETATTR, "int", tree, "str", "", "uint", AT_EMPTY_PATH, "void *", attr, "size_t", size);
  if (Number(set) === 0) return tree;
  const errno = koffi.errno();
  closeFd(tree);
  return fail("mount_setattr", source, errno);
}

function attachMount(tree: number, target: string): void {
  const moved = syscallFn(SYS_MOVE_MOUNT, "int", tree, "str", "", "int", AT_FDCWD, "str", target, "uint", MOVE_MOUNT_F_EMPTY_PATH);
  if (Number(moved) !== 0) fail("move_mount", target);
}

const setnsFn = libc.func("int setns(int fd, int kind)");
const unshareFn = libc.func("int unshare(int flags)");
const fchdirFn = libc.func("int fchdir(int fd)");
const CLONE_FS = 0x200;
const CLONE_NEWNS = 0x20000;

/**
 * Mounts a read-only copy of the file at `source` onto `target` in the mount namespace of another process.
 * The calling thread enters that namespace for the time of one system call. The kernel allows that to a thread whose root and working
 * directory are its own, so they are no longer shared with the other threads afterwards: a later `process.chdir` affects this thread alone.
 */
export function mountInNamespaceOf(pid: number, options: { source: string; target: string }): void {
  const tree = cloneMount(options.source, { attributes: MOUNT_ATTR_READ_ONLY });
  const opened = [tree];
  const open = (path: string) => {
    opened.push(openSync(path, "r"));
    return opened.at(-1) as number;
  };
  try {
    const [theirs, ours, workingDirectory] = [open(`/proc/${pid}/ns/mnt`), open("/proc/thread-self/ns/mnt"), open(".")];
    if (unshareFn(CLONE_FS) !== 0) fail("unshare", "the thread's directories");
    if (setnsFn(theirs, CLONE_NEWNS) !== 0) fail("setns", `process ${pid}`);
    try {
      attachMount(tree, options.target);
    } finally {
      // Nothing else may ever run in the namespace of a sandbox.
      if (setnsFn(ours, CLONE_NEWNS) !== 0 || fchdirFn(workingDirectory) !== 0) process.abort();
    }
  } finally {
    for (const fd of opened) closeFd(fd);
  }
}

const flockFn = libc.func("int flock(int fd, int operation)");
const LOCK_EX_NB = 2 | 4;

/** Takes the exclusive lock (flock) of an open file, until the file is closed. Returns false when another process holds it. */
export function lockFile(fd: number): boolean {
  if (flockFn(fd, LOCK_EX_NB) === 0) return true;
  return koffi.errno() === koffi.os.errno.EWOULDBLOCK ? false : fail("flock", `descriptor ${fd}`);
}

const fcntlFn = libc.func("int fcntl(int fd, int command, _Inout_ uint8_t *argument)");
const F_GETLK = 5;
const F_SETLK = 6;
const F_RDLCK = 0;
const F_WRLCK = 1;
const F_UNLCK = 2;

/** `struct flock` for the whole file, as 64-bit systems lay it out. */
function flockOf(type: number): Buffer {
  const lock = Buffer.alloc(32);
  lock.writeInt16LE(type, 0);
  return lock;
}

/**
 * Takes a shared POSIX lock of a file. The lock ends with the process, or when the process closes any descriptor of the file.
 * Returns false when another process holds an exclusive lock.
 */
export function shareFile(fd: number): boolean {
  if (fcntlFn(fd, F_SETLK, flockOf(F_RDLCK)) === 0) return true;
  const errno = koffi.errno();
  return errno === koffi.os.errno.EAGAIN || errno === koffi.os.errno.EACCES ? false : fail("fcntl", `descriptor ${fd}`, errno);
}

/**
 * The pid of a process that holds a lock of `shareFile`; undefined when no other process does. 0 when the process is in another PID
 * namespace and has no pid here.
 */
export function findSharer(fd: number): number | undefined {
  const lock = flockOf(F_WRLCK);
  if (fcntlFn(fd, F_GETLK, lock) !== 0) fail("fcntl", `descriptor ${fd}`);
  return lock.readInt16LE(0) === F_UNLCK ? undefined : lock.readInt32LE(24);
}

const closeFn = libc.func("int close(int fd)");
function closeFd(fd: number): void {
  closeFn(fd);
}

/** Names of the extended attributes of a path. [] on file systems without extended attributes. Does not follow links. */
export function listXattrs(path: string): string[] {
  const size = Number(llistxattrFn(path, null, 0));
  if (size === 0) return [];
  if (size < 0) return koffi.errno() === koffi.os.errno.EOPNOTSUPP ? [] : fail("llistxattr", path);
  const buffer = Buffer.alloc(size);
  const read = Number(llistxattrFn(path, buffer, size));
  if (read < 0) fail("llistxattr", path);
  return buffer
    .subarray(0, read)
    .toString("utf8")
    .split("\0")
    .filter((name) => name !== "");
}

export function readXattr(path: string, name: string): Buffer {
  const size = Number(lgetxattrFn(path, name, null, 0));
  if (size < 0) fail(`lgetxattr ${name}`, path);
  const buffer = Buffer.alloc(size);
  const read = size === 0 ? 0 : Number(lgetxattrFn(path, name, buffer, size));
  if (read < 0) fail(`lgetxattr ${name}`, path);
  return buffer.subarray(0, read);
}

const lremovexattrFn = libc.func("int lremovexattr(const uint8_t *path, const char *name)");

/** Removes an extended attribute of a path. Does not follow links. */
export function removeXattr(path: string | Uint8Array, name: string): void {
  if (lremovexattrFn(terminated(Buffer.from(path)), name) !== 0) fail(`lremovexattr ${name}`, path.toString());
}

const lsetxattrFn = libc.func("int lsetxattr(const char *path, const char *name, const char *value, size_t size, int flags)");

/** Sets an extended attribute of a path. Does not follow links. */
export function writeXattr(path: string, name: string, value: string): void {
  if (lsetxattrFn(path, name, value, Buffer.byteLength(value), 0) !== 0) fail(`lsetxattr ${name}`, path);
}

// The same functions for paths as bytes, because file names of a guest need not be valid UTF-8. None of them follows links.
const llistxattrBytesFn = libc.func("long llistxattr(const uint8_t *path, _Out_ uint8_t *list, size_t size)");
const lgetxattrBytesFn = libc.func("long lgetxattr(const uint8_t *path, const uint8_t *name, _Out_ uint8_t *value, size_t size)");
const lsetxattrBytesFn = libc.func("int lsetxattr(const uint8_t *path, const uint8_t *name, const uint8_t *value, size_t size, int flags)");
const mknodBytesFn = libc.func("int mknod(const uint8_t *path, unsigned int mode, unsigned long device)");
const utimensatFn = libc.func("int utimensat(int folder, const uint8_t *path, const int64_t *times, int flags)");
const AT_SYMLINK_NOFOLLOW = 0x100;
const terminated = (bytes: Uint8Array) => Buffer.concat([bytes, Buffer.alloc(1)]);

/** The value of an extended attribute; undefined when the path has none of this name. */
export function findXattr(path: Uint8Array, name: string): Buffer | undefined {
  const [source, wanted] = [terminated(path), terminated(Buffer.from(name))];
  const size = Number(lgetxattrBytesFn(source, wanted, null, 0));
  if (size < 0 && ["ENODATA", "EOPNOTSUPP"].some((code) => koffi.errno() === koffi.os.errno[code])) return undefined;
  if (size < 0) fail(`lgetxattr ${name}`, path.toString());
  const value = Buffer.alloc(size);
  if (size > 0 && Number(lgetxattrBytesFn(source, wanted, value, size)) !== size) fail(`lgetxattr ${name}`, path.toString());
  return value;
}

/** Sets an extended attribute. */
export function setXattr(path: Uint8Array, name: string | Uint8Array, value: Uint8Array): void {
  if (lsetxattrBytesFn(terminated(path), terminated(Buffer.from(name)), value, value.length, 0) !== 0)
    fail(`lsetxattr ${name.toString()}`, path.toString());
}

/** Copies all extended attributes. */
export function copyXattrs(from: Uint8Array, to: Uint8Array): void {
  for (const [name, value] of readXattrs(from)) setXattr(to, name, value);
}

/** All extended attributes of a path, in the order in which the file system lists them. */
export function readXattrs(path: Uint8Array): [name: Buffer, value: Buffer][] {
  const source = terminated(path);
  const size = Number(llistxattrBytesFn(source, null, 0));
  if (size < 0 && koffi.errno() === koffi.os.errno.EOPNOTSUPP) return [];
  if (size < 0) fail("llistxattr", path.toString());
  const room = Buffer.alloc(size);
  // An overlay returns fewer bytes than it announced.
  const length = size > 0 ? Number(llistxattrBytesFn(source, room, size)) : 0;
  if (length < 0) fail("llistxattr", path.toString());
  const list = room.subarray(0, length);
  const found: [Buffer, Buffer][] = [];
  for (let at = 0, end = list.indexOf(0); end > at; at = end + 1, end = list.indexOf(0, at)) {
    const name = list.subarray(at, end + 1);
    const length = Number(lgetxattrBytesFn(source, name, null, 0));
    const value = Buffer.alloc(Math.max(0, length));
    if (length < 0 || (length > 0 && Number(lgetxattrBytesFn(source, name, value, length)) !== length)) fail("lgetxattr", path.toString());
    found.push([name.subarray(0, -1), value]);
  }
  return found;
}

/** Creates a device, a named pipe or a socket file. `mode` and `device` are as in a file's status. */
export function makeNode(path: Uint8Array, { mode, device }: { mode: number; device: number }): void {
  if (mknodBytesFn(terminated(path), mode, device) !== 0) fail("mknod", path.toString());
}

/** Sets the times of a path with nanoseconds, which Node.js cannot do. Does not follow links. */
export function setTimes(path: Uint8Array, { atimeNs, mtimeNs }: { atimeNs: bigint; mtimeNs: bigint }): void {
  const billion = 1_000_000_000n;
  const times = new BigInt64Array([atimeNs, mtimeNs].flatMap((ns) => [ns / billion, ns % billion]));
  if (utimensatFn(AT_FDCWD, terminated(path), times, AT_SYMLINK_NOFOLLOW) !== 0) fail("utimensat", path.toString());
}

const openByHandleFn = libc.func("int open_by_handle_at(int folder, const uint8_t *handle, int flags)");
const O_PATH_CLOEXEC = 0o12000000;

/**
 * Opens a file by its handle, which identifies it within its file system whatever its names are. `folder` is any open folder of that file
 * system. Returns a descriptor that cannot be read from, which the caller closes; undefined when there is no such file.
 */
export function openByHandle(folder: number, { type, id }: { type: number; id: Uint8Array }): number | undefined {
  const handle = Buffer.alloc(8 + id.length);
  handle.writeUInt32LE(id.length, 0);
  handle.writeInt32LE(type, 4);
  handle.set(id, 8);
  const fd = openByHandleFn(folder, handle, O_PATH_CLOEXEC);
  if (fd >= 0) return fd;
  return koffi.errno() === koffi.os.errno.ESTALE ? undefined : fail("open_by_handle_at", `descriptor ${folder}`);
}

/** When it returns, the names in a directory survive a power loss. */
export function syncDirectory(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
