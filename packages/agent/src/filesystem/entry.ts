import { type BigIntStats, lstatSync, realpathSync, statSync } from "node:fs";
import { lstat, realpath, stat } from "node:fs/promises";
import { posix } from "node:path";
import { FileType } from "@skerry/wire/filesystem";
import type { NameTable } from "../accounts/accounts.ts";
import { loadLibc } from "../native/libc.ts";
import { type Metadata, readMetadata } from "./metadata.ts";
import { permissionString } from "./permissions.ts";

/** The fields of an EntryInfo. */
export interface Entry {
  readonly name: string;
  readonly path: string;
  readonly type: FileType;
  readonly size: bigint;
  readonly mode: number;
  readonly permissions: string;
  readonly owner: string;
  readonly group: string;
  readonly modifiedTime: { readonly seconds: bigint; readonly nanos: number };
  readonly symlinkTarget?: string;
  readonly metadata: Metadata;
  readonly isSymlink: boolean;
}

interface Found {
  readonly own: BigIntStats;
  /** The target of a symbolic link; otherwise the file itself. */
  readonly target: { readonly stats: BigIntStats | undefined; readonly path: string | Buffer };
}

/**
 * Describes one file. For a symbolic link, size, owner and time are those of the link; type and mode bits are those of its target.
 * `file` is the path in bytes, if the path is not UTF-8.
 */
export async function readEntry(path: string, names: NameTable, file: string | Buffer = path): Promise<Entry> {
  await loadLibc();
  const own = await lstat(file, { bigint: true });
  const target = own.isSymbolicLink() ? await targetOf(file) : { stats: own, path: file };
  return describe(path, names, { own, target });
}

/** The synchronous form, for many files: passing each to a thread takes several times as long. Preconditions: libc is loaded. */
export function readEntryNow(path: string, names: NameTable, file: string | Buffer = path): Entry {
  const own = lstatSync(file, { bigint: true });
  const target = own.isSymbolicLink() ? targetNow(file) : { stats: own, path: file };
  return describe(path, names, { own, target });
}

function describe(path: string, names: NameTable, { own, target }: Found): Entry {
  const isSymlink = own.isSymbolicLink();
  const metadata = target.stats?.isFile() || target.stats?.isDirectory() ? readMetadata(target.path) : {};
  return {
    name: nameOf(path),
    path,
    type: fileType(target.stats),
    size: own.size,
    mode: target.stats === undefined ? 0 : Number(target.stats.mode) & 0o777,
    permissions: permissionString(Number(own.mode)),
    owner: names.user(Number(own.uid)),
    group: names.group(Number(own.gid)),
    modifiedTime: timestamp(own.mtimeNs),
    ...(isSymlink ? { symlinkTarget: target.path.toString() } : {}),
    metadata,
    isSymlink,
  };
}

function nameOf(path: string): string {
  if (path === "/") return "/";
  return path.endsWith("/") ? posix.basename(path) : path.slice(path.lastIndexOf("/") + 1);
}

// If the target cannot be resolved, the link itself takes its place.
async function targetOf(path: string | Buffer): Promise<Found["target"]> {
  try {
    const resolved = await realpath(path, { encoding: "buffer" });
    return { stats: await stat(resolved, { bigint: true }), path: resolved };
  } catch {
    return { stats: undefined, path };
  }
}

function targetNow(path: string | Buffer): Found["target"] {
  try {
    const resolved = realpathSync.native(path, { encoding: "buffer" });
    return { stats: statSync(resolved, { bigint: true }), path: resolved };
  } catch {
    return { stats: undefined, path };
  }
}

function fileType(stats: BigIntStats | undefined): FileType {
  if (stats?.isFile()) return FileType.FILE;
  if (stats?.isDirectory()) return FileType.DIRECTORY;
  return FileType.UNSPECIFIED;
}

const NANOSECONDS = 1_000_000_000n;
/** Range of a timestamp on the wire: the years 1 to 9999, in nanoseconds. In-memory file systems store any time that a program sets. */
const FIRST_TIME = -62_135_596_800_000_000_000n;
const LAST_TIME = 253_402_300_799_999_999_999n;

// `nanos` is never negative, even before 1970.
function timestamp(nanoseconds: bigint): Entry["modifiedTime"] {
  const time = nanoseconds < FIRST_TIME ? FIRST_TIME : nanoseconds > LAST_TIME ? LAST_TIME : nanoseconds;
  const seconds = time / NANOSECONDS;
  const nanos = Number(time - seconds * NANOSECONDS);
  return nanos < 0 ? { seconds: seconds - 1n, nanos: nanos + Number(NANOSECONDS) } : { seconds, nanos };
}
