import { readdir, realpath, stat } from "node:fs/promises";
import { setImmediate } from "node:timers/promises";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { errnoOf } from "@skerry/base";
import type { ListDirRequest } from "@skerry/wire/filesystem";
import { NameTable } from "../accounts/accounts.ts";
import { loadLibc } from "../native/libc.ts";
import { type FilesystemContext, resolvePath } from "./context.ts";
import { type EntryInit, readEntry, readEntryNow } from "./entry.ts";
import { fileError } from "./file-error.ts";
import { areMountsLocal } from "./local-mounts.ts";

/** Entries are looked at in parallel in groups of this size: enough for the thread pool, little enough for memory. */
const GROUP = 64;
/** For so long nothing else is answered. */
const SLICE_MS = 5;

/** Bytes for what is not UTF-8. */
type RawPath = string | Buffer;

interface Found {
  /** As clients see it: what is not UTF-8 has U+FFFD in its place. */
  readonly path: string;
  readonly file: RawPath;
}

export async function listDir(
  filesystem: FilesystemContext,
  request: ListDirRequest,
  context: HandlerContext,
): Promise<{ entries: EntryInit[] }> {
  const { path } = resolvePath(filesystem, request.path, context);
  const real = await resolveRoot(path);
  const found: Found[] = [];
  try {
    await walk({ shown: path, real }, Math.max(request.depth, 1), found);
    return { entries: await describe(found) };
  } catch (error) {
    throw fileError(`error reading directory ${path}`, error);
  }
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

// Depth first, names in byte order, each directory right before its contents. Links are listed and never entered.
async function walk(folder: { shown: string; real: RawPath }, depth: number, found: Found[]): Promise<void> {
  for (const child of await readChildren(folder.real)) {
    const shown = join(folder.shown, child.text);
    const real = joinRaw(folder.real, child.name);
    found.push({ path: shown, file: real });
    if (depth <= 1 || !child.isDirectory) continue;
    try {
      await walk({ shown, real }, depth - 1, found);
    } catch (error) {
      if (!isGone(error)) throw error;
    }
  }
}

interface Child {
  readonly name: RawPath;
  readonly text: string;
  readonly isDirectory: boolean;
}

async function readChildren(folder: RawPath): Promise<Child[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const children: Child[] = entries.some(({ name }) => name.includes("\ufffd"))
    ? (await readdir(folder, { withFileTypes: true, encoding: "buffer" })).map((entry) => ({
        name: entry.name,
        text: entry.name.toString("utf8"),
        isDirectory: entry.isDirectory(),
      }))
    : entries.map((entry) => ({ name: entry.name, text: entry.name, isDirectory: entry.isDirectory() }));
  return children.sort((a, b) => compareNames(a.name, b.name));
}

/** In the order of their bytes, which JavaScript's own order is except for what takes two units of UTF-16. */
function compareNames(a: RawPath, b: RawPath): number {
  const isPlain = typeof a === "string" && typeof b === "string" && !/[\ud800-\udfff]/.test(a) && !/[\ud800-\udfff]/.test(b);
  if (!isPlain) return Buffer.compare(Buffer.from(a), Buffer.from(b));
  return a < b ? -1 : a > b ? 1 : 0;
}

function describe(found: readonly Found[]): Promise<EntryInit[]> {
  return areMountsLocal() ? describeInSlices(found) : describeInGroups(found);
}

async function describeInSlices(found: readonly Found[]): Promise<EntryInit[]> {
  await loadLibc();
  const names = new NameTable();
  const entries: EntryInit[] = [];
  let sliceEnd = performance.now() + SLICE_MS;
  for (const { path, file } of found) {
    try {
      entries.push(readEntryNow(path, names, file));
    } catch (error) {
      if (!isGone(error)) throw error;
    }
    if (performance.now() < sliceEnd) continue;
    await setImmediate();
    sliceEnd = performance.now() + SLICE_MS;
  }
  return entries;
}

async function describeInGroups(found: readonly Found[]): Promise<EntryInit[]> {
  const names = new NameTable();
  const entries: EntryInit[] = [];
  for (let from = 0; from < found.length; from += GROUP) {
    const group = found.slice(from, from + GROUP).map((each) => entryUnlessGone(each, names));
    for (const entry of await Promise.all(group)) if (entry) entries.push(entry);
  }
  return entries;
}

async function entryUnlessGone({ path, file }: Found, names: NameTable): Promise<EntryInit | undefined> {
  try {
    return await readEntry(path, names, file);
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}

function isGone(error: unknown): boolean {
  return errnoOf(error) === "ENOENT";
}

function join(folder: string, name: string): string {
  return folder.endsWith("/") ? folder + name : `${folder}/${name}`;
}

function joinRaw(folder: RawPath, name: RawPath): RawPath {
  if (typeof folder === "string" && typeof name === "string") return join(folder, name);
  const end = folder.at(-1);
  const isClosed = end === "/" || end === 0x2f;
  return Buffer.concat([Buffer.from(folder), Buffer.from(isClosed ? "" : "/"), Buffer.from(name)]);
}
