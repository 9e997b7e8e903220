// The program that unpacks the layers of an image, in a process of its own (unpack.privileged.ts). It opens the layers' files, makes the
// target its root directory, and only then reads them.

import { createReadStream, openSync } from "node:fs";
import { createGunzip } from "node:zlib";
import { errnoName, errnoOf, PlatformError } from "@skerry/base/error";
import koffi from "koffi";
import { ByteReader } from "../archive/byte-reader.ts";
import { type AppliedTree, LayerApplier, setDirectoryTimes } from "./apply-layer.privileged.ts";

export interface UnpackRequest {
  /** Lowest first. */
  readonly files: readonly string[];
  readonly target: string;
  /** Of all layers, unpacked. */
  readonly maxBytes: number;
  readonly maxEntries: number;
}

export type UnpackAnswer =
  | { readonly kind: "unpacked"; readonly bytes: number; readonly entries: number }
  | { readonly kind: "too-large" }
  | { readonly kind: "unusable"; readonly why: string }
  /** A failure of this machine. */
  | { readonly kind: "failed"; readonly why: string };

const PIECE_BYTES = 1024 * 1024;
const GZIP = Buffer.from([0x1f, 0x8b]);
/** What a hostile layer provokes. Everything else is a failure of this machine, such as a full disk. */
const CAUSED_BY_LAYERS = new Set([
  "ENOENT",
  "ENOTDIR",
  "EISDIR",
  "ELOOP",
  "ENAMETOOLONG",
  "EINVAL",
  "EPERM",
  "EEXIST",
  "ENOTEMPTY",
  "EMLINK",
  "ERANGE",
  "EACCES",
]);

class TooLarge extends Error {}

async function unpack({ files, target, maxBytes, maxEntries }: UnpackRequest): Promise<UnpackAnswer> {
  const descriptors = files.map((file) => openSync(file, "r"));
  changeRoot(target);
  const tree: AppliedTree = { directoryTimes: new Map([["", 0n]]), entries: 0 };
  const read = { bytes: 0 };
  try {
    for (const fd of descriptors) {
      const reader = new ByteReader(counted(decompressed(fd), read, maxBytes));
      await new LayerApplier(reader, { tree, maxEntries }).run();
    }
    setDirectoryTimes(tree);
    return { kind: "unpacked", bytes: read.bytes, entries: tree.entries };
  } catch (error) {
    return answerOf(error);
  }
}

function changeRoot(target: string): void {
  if (koffi.load("libc.so.6").func("int chroot(const char *path)")(target) !== 0) throw new Error(`chroot: ${errnoName(koffi.errno())}`);
  process.chdir("/");
}

async function* decompressed(fd: number): AsyncGenerator<Buffer> {
  const file = createReadStream("", { fd, highWaterMark: PIECE_BYTES });
  const chunks = file[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  const first = await chunks.next();
  if (first.done) return;
  const all = async function* () {
    yield first.value;
    for (let next = await chunks.next(); !next.done; next = await chunks.next()) yield next.value;
  };
  if (!first.value.subarray(0, GZIP.length).equals(GZIP)) {
    yield* all();
    return;
  }
  const gunzip = createGunzip({ chunkSize: PIECE_BYTES });
  const fed = feed(all(), gunzip);
  yield* gunzip as AsyncIterable<Buffer>;
  await fed;
}

async function feed(source: AsyncIterable<Buffer>, into: NodeJS.WritableStream & { destroy(error: Error): void }): Promise<void> {
  try {
    for await (const chunk of source) if (!into.write(chunk)) await new Promise((resolve) => into.once("drain", resolve));
    into.end();
  } catch (error) {
    into.destroy(error as Error);
  }
}

async function* counted(source: AsyncIterable<Buffer>, read: { bytes: number }, maxBytes: number): AsyncGenerator<Buffer> {
  for await (const chunk of source) {
    read.bytes += chunk.length;
    if (read.bytes > maxBytes) throw new TooLarge();
    yield chunk;
  }
}

function answerOf(error: unknown): UnpackAnswer {
  if (error instanceof TooLarge) return { kind: "too-large" };
  if (error instanceof PlatformError && error.code === "archive_invalid") return { kind: "unusable", why: error.message };
  const text = String(error);
  const errno = errnoOf(error) ?? /\bE[A-Z0-9]{3,}\b/.exec(text)?.[0] ?? "";
  if (/^Z_/.test((error as { code?: string }).code ?? "")) return { kind: "unusable", why: "its compressed data are damaged" };
  return CAUSED_BY_LAYERS.has(errno) ? { kind: "unusable", why: text } : { kind: "failed", why: text };
}

process.stdout.write(JSON.stringify(await unpack(JSON.parse(process.argv[2] ?? "") as UnpackRequest)));
