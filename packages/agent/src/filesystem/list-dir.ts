import { realpath, stat } from "node:fs/promises";
import { setImmediate as nextRound } from "node:timers/promises";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { errnoOf } from "@skerry/base";
import type { ListDirRequest } from "@skerry/wire/filesystem";
import { NameTable } from "../accounts/accounts.ts";
import { type StreamedBody, streamedBodyKey } from "../http/streamed-body.ts";
import { loadLibc } from "../native/libc.ts";
import { type FilesystemContext, resolvePath } from "./context.ts";
import { type Entry, readEntry, readEntryNow } from "./entry.ts";
import { fileError } from "./file-error.ts";
import { encodeEntries } from "./listing/encode-entries.ts";
import { type Place, walk } from "./listing/walk.ts";
import { areMountsLocal } from "./mounts.ts";

/** Entries per batch: enough to keep the thread pool busy, and a few milliseconds of work when described synchronously. */
const BATCH = 32;
/** Longest time for which a listing keeps the agent from serving other requests. */
const SLICE_MS = 5;
/**
 * A response up to this size is complete before its first byte is sent, so that every failure becomes an error response. The rest of a
 * larger one is streamed, and a failure then breaks the connection.
 */
const HELD_BYTES = 8 * 1024 * 1024;

/** Responds with the streamed body; the message itself stays empty. */
export async function listDir(
  filesystem: FilesystemContext,
  request: ListDirRequest,
  context: HandlerContext,
): Promise<Record<never, never>> {
  const { path } = resolvePath(filesystem, request.path, context);
  const real = await resolveRoot(path);
  await loadLibc();
  const places = walk({ shown: path, real }, { depth: Math.max(request.depth, 1), batch: BATCH });
  const isBinary = context.requestHeader.get("Content-Type")?.toLowerCase() === "application/proto";
  const pieces = encodeEntries(describe(places), isBinary ? "binary" : "json");
  try {
    context.values.set(streamedBodyKey, await beginBody(pieces, context.signal));
    return {};
  } catch (error) {
    throw error instanceof ConnectError ? error : fileError(`error reading directory ${path}`, error);
  }
}

async function beginBody(pieces: AsyncGenerator<Uint8Array>, signal: AbortSignal): Promise<StreamedBody> {
  const held: Uint8Array[] = [];
  let heldBytes = 0;
  while (heldBytes < HELD_BYTES) {
    signal.throwIfAborted();
    const { done, value } = await pieces.next();
    if (done) return { pieces: held, bytes: heldBytes };
    held.push(value);
    heldBytes += value.length;
  }
  return { pieces: inTurn(held, pieces), bytes: undefined };
}

async function* inTurn(held: Uint8Array[], rest: AsyncGenerator<Uint8Array>): AsyncGenerator<Uint8Array> {
  for (let piece = held.shift(); piece; piece = held.shift()) yield piece;
  yield* rest;
}

async function resolveRoot(path: string): Promise<string> {
  try {
    const real = await realpath(path);
    if ((await stat(real)).isDirectory()) return real;
  } catch (error) {
    if (errnoOf(error) === "ENOENT") throw new ConnectError(`path not found: ${path}`, Code.NotFound);
    if (errnoOf(error) === "ELOOP") throw new ConnectError(`cyclic symlink or chain >255 links at "${path}"`, Code.FailedPrecondition);
    if (errnoOf(error) !== "ENOTDIR") throw fileError("error getting file info", error);
  }
  throw new ConnectError(`path is not a directory: ${path}`, Code.InvalidArgument);
}

async function* describe(batches: AsyncIterable<Place[]>): AsyncGenerator<Entry[]> {
  const names = new NameTable();
  const isLocal = areMountsLocal();
  let sliceEnd = performance.now() + SLICE_MS;
  for await (const places of batches) {
    const entries = isLocal ? describeNow(places, names) : await describeApart(places, names);
    if (entries.length > 0) yield entries;
    if (performance.now() < sliceEnd) continue;
    await nextRound();
    sliceEnd = performance.now() + SLICE_MS;
  }
}

function describeNow(places: readonly Place[], names: NameTable): Entry[] {
  const entries: Entry[] = [];
  for (const { shown, real } of places) {
    try {
      entries.push(readEntryNow(shown, names, real));
    } catch (error) {
      if (!isGone(error)) throw error;
    }
  }
  return entries;
}

async function describeApart(places: readonly Place[], names: NameTable): Promise<Entry[]> {
  const entries = await Promise.all(places.map((place) => entryUnlessGone(place, names)));
  return entries.filter((entry) => entry !== undefined);
}

async function entryUnlessGone({ shown, real }: Place, names: NameTable): Promise<Entry | undefined> {
  try {
    return await readEntry(shown, names, real);
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}

function isGone(error: unknown): boolean {
  return errnoOf(error) === "ENOENT";
}
