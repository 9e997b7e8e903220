import { type BigIntStats, lstatSync, realpathSync, statSync } from "node:fs";
import { lstat, realpath, stat } from "node:fs/promises";
import { posix } from "node:path";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type EntryInfoSchema, FileType } from "@skerry/wire/filesystem";
import type { NameTable } from "../accounts/accounts.ts";
import { loadLibc } from "../native/libc.ts";
import { readMetadata } from "./metadata.ts";
import { permissionString } from "./permissions.ts";

export type EntryInit = MessageInitShape<typeof EntryInfoSchema>;

interface Found {
  readonly own: BigIntStats;
  /** Of a link; else the file itself. */
  readonly target: { readonly stats: BigIntStats | undefined; readonly path: string | Buffer };
}

/**
 * One file as clients see it. Size, owner and times are the link's own; kind and mode bits are the target's.
 * `file` is for paths that are not UTF-8 and have no exact text.
 */
export async function readEntry(path: string, names: NameTable, file: string | Buffer = path): Promise<EntryInit> {
  await loadLibc();
  const own = await lstat(file, { bigint: true });
  const target = own.isSymbolicLink() ? await targetOf(file) : { stats: own, path: file };
  return describe(path, names, { own, target });
}

/** The same at once, for many files: handing each to another thread takes several times as long. Preconditions: `loadLibc` is done. */
export function readEntryNow(path: string, names: NameTable, file: string | Buffer = path): EntryInit {
  const own = lstatSync(file, { bigint: true });
  const target = own.isSymbolicLink() ? targetNow(file) : { stats: own, path: file };
  return describe(path, names, { own, target });
}

function describe(path: string, names: NameTable, { own, target }: Found): EntryInit {
  const isSymlink = own.isSymbolicLink();
  const metadata = target.stats?.isFile() || target.stats?.isDirectory() ? readMetadata(target.path) : {};
  return {
    name: path === "/" ? "/" : posix.basename(path),
    path,
    type: fileType(target.stats),
    size: own.size,
    mode: target.stats === undefined ? 0 : Number(target.stats.mode) & 0o777,
    permissions: permissionString(Number(own.mode)),
    owner: names.user(Number(own.uid)),
    group: names.group(Number(own.gid)),
    modifiedTime: timestamp(own.mtimeNs),
    ...(isSymlink ? { symlinkTarget: target.path.toString() } : {}),
    metadata: { ...metadata },
    isSymlink,
  };
}

// A link whose target cannot be resolved stands for itself.
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

// Euclidean division, so that times before 1970 have positive nanoseconds.
function timestamp(nanoseconds: bigint): { seconds: bigint; nanos: number } {
  const nanos = ((nanoseconds % 1_000_000_000n) + 1_000_000_000n) % 1_000_000_000n;
  return { seconds: (nanoseconds - nanos) / 1_000_000_000n, nanos: Number(nanos) };
}
