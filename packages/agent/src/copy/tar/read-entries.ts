// The entries of a tar archive, one after the other. The archive is hostile: everything that is held in memory has a limit.

import type { BytePath } from "../byte-path.ts";
import { ArchiveError } from "../errors.ts";
import type { ByteSource } from "./byte-source.ts";
import { BLOCK_BYTES, type Header, isEmptyBlock, paddingOf, parseHeader, sizeOf } from "./header.ts";
import { type PaxRecords, parsePax, paxNumber } from "./pax.ts";
import { fits, readOldSparseMap, readPaxSparseMap, type SparseMap } from "./sparse.ts";

export type EntryType = "file" | "directory" | "symlink" | "hardlink" | "device" | "fifo";

export interface Entry {
  readonly type: EntryType;
  /** As it is in the archive: it may be absolute, or have "..". */
  readonly name: BytePath;
  /** Target of a link. */
  readonly linkName: BytePath;
  readonly mode: number;
  readonly mtime: number;
  readonly content: Content;
}

/** What a file consists of. Its data follows in the source. */
export interface Content {
  readonly size: number;
  /** Undefined for a file without holes. */
  readonly sparse: SparseMap | undefined;
}

/** Limit on long names and extended headers. The kernel's limit on a path is 4 KiB, and on the attributes of a file 64 KiB. */
const MAX_EXTRA_BYTES = 1024 * 1024;

const TYPES: ReadonlyMap<string, EntryType> = new Map([
  ["0", "file"],
  ["\0", "file"],
  ["7", "file"],
  ["S", "file"],
  ["1", "hardlink"],
  ["2", "symlink"],
  ["3", "device"],
  ["4", "device"],
  ["5", "directory"],
  ["6", "fifo"],
]);

/** What stands before an entry and belongs to it. */
interface Extra {
  pax: PaxRecords;
  name: BytePath | undefined;
  linkName: BytePath | undefined;
}

/**
 * Calls `place` for each entry. For a file it may read the content from the source, or a part of it. Throws ArchiveError. Bytes after the end
 * of the archive are ignored.
 */
export async function readEntries(source: ByteSource, place: (entry: Entry) => Promise<void>): Promise<void> {
  let extra = noExtra();
  for (;;) {
    const block = await source.read(BLOCK_BYTES);
    if (isEmptyBlock(block)) break;
    const header = parseHeader(block);
    if (await readExtra(source, header, extra)) continue;
    await placeOne(source, { block, header, extra }, place);
    extra = noExtra();
  }
  await source.drain();
}

function noExtra(): Extra {
  return { pax: new Map(), name: undefined, linkName: undefined };
}

/** Reads an entry that only describes the next one, or the archive. Returns false for any other. */
async function readExtra(source: ByteSource, { type, size }: Header, extra: Extra): Promise<boolean> {
  if (!["x", "g", "L", "K", "V"].includes(type)) return false;
  if (size > MAX_EXTRA_BYTES) throw new ArchiveError("the archive has a name or an extended header that is too long");
  const bytes = await source.read(size);
  if (type === "x") extra.pax = parsePax(bytes);
  if (type === "L") extra.name = upToNul(bytes);
  if (type === "K") extra.linkName = upToNul(bytes);
  await source.skip(paddingOf(size));
  return true;
}

function upToNul(bytes: Buffer): BytePath {
  const end = bytes.indexOf(0);
  return bytes.toString("latin1", 0, end === -1 ? bytes.length : end);
}

interface Raw {
  readonly block: Buffer;
  readonly header: Header;
  readonly extra: Extra;
}

async function placeOne(source: ByteSource, { block, header, extra }: Raw, place: (entry: Entry) => Promise<void>): Promise<void> {
  const { pax } = extra;
  const name = pax.get("GNU.sparse.name") ?? pax.get("path") ?? extra.name ?? header.name;
  const linkName = pax.get("linkpath") ?? extra.linkName ?? header.linkName;
  if (name.includes("\0") || linkName.includes("\0")) throw new ArchiveError("the archive has a name with a NUL character");
  const type = typeOf(header, name);
  // The size of an entry that is no file says nothing about what follows: no format has content there.
  const size = type === "file" ? sizeOf(paxNumber(pax, "size") ?? header.size) : 0;
  const sparse = type === "file" ? await sparseMap(source, { header, block, pax }) : undefined;
  if (sparse && !fits(sparse, size)) throw new ArchiveError("the archive is damaged: the size of a sparse file");
  const { mode } = header;
  const before = source.taken;
  const mtime = paxNumber(pax, "mtime") ?? header.mtime;
  await place({ type, name, linkName, mode, mtime, content: { size: sparse?.realSize ?? size, sparse } });
  const left = size - (sparse?.mapBytes ?? 0) - (source.taken - before);
  await source.skip(left + paddingOf(size));
}

function sparseMap(
  source: ByteSource,
  { header, block, pax }: { header: Header; block: Buffer; pax: PaxRecords },
): Promise<SparseMap | undefined> {
  return header.type === "S" ? readOldSparseMap(block, source) : readPaxSparseMap(pax, source);
}

function typeOf({ type }: Header, name: BytePath): EntryType {
  const known = TYPES.get(type);
  if (!known) throw new ArchiveError(`the archive has an entry of a kind that is not supported (${JSON.stringify(type)})`);
  // Before POSIX, a directory was a file whose name ends with a slash.
  return known === "file" && name.endsWith("/") ? "directory" : known;
}
