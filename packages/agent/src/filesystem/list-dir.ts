import { readdir, realpath, stat } from "node:fs/promises";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { asError, errnoOf } from "@skerry/base";
import type { ListDirRequest } from "@skerry/wire/filesystem";
import { NameTable } from "../accounts/accounts.ts";
import { type FilesystemContext, resolvePath } from "./context.ts";
import { type EntryInit, readEntry } from "./entry.ts";

/** Entries are looked at in parallel in groups of this size: enough for the thread pool, little enough for memory. */
const GROUP = 64;

interface Found {
  readonly path: string;
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
    throw new ConnectError(`error reading directory ${path}: ${asError(error).message}`, Code.Internal);
  }
}

async function resolveRoot(path: string): Promise<string> {
  try {
    const real = await realpath(path);
    if ((await stat(real)).isDirectory()) return real;
  } catch (error) {
    if (errnoOf(error) === "ENOENT") throw new ConnectError(`path not found: ${path}`, Code.NotFound);
    if (errnoOf(error) === "ELOOP") throw new ConnectError(`cyclic symlink or chain >255 links at "${path}"`, Code.FailedPrecondition);
    if (errnoOf(error) !== "ENOTDIR") throw new ConnectError(`error getting file info: ${asError(error).message}`, Code.Internal);
  }
  throw new ConnectError(`path is not a directory: ${path}`, Code.InvalidArgument);
}

// Depth first, names in byte order, each directory right before its contents. Links are listed and never entered.
async function walk(folder: { shown: string; real: string }, depth: number, found: Found[]): Promise<void> {
  const children = await readdir(folder.real, { withFileTypes: true });
  children.sort((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)));
  for (const child of children) {
    const shown = join(folder.shown, child.name);
    found.push({ path: shown });
    if (depth <= 1 || !child.isDirectory()) continue;
    try {
      await walk({ shown, real: join(folder.real, child.name) }, depth - 1, found);
    } catch (error) {
      if (!isGone(error)) throw error;
    }
  }
}

async function describe(found: readonly Found[]): Promise<EntryInit[]> {
  const names = new NameTable();
  const entries: EntryInit[] = [];
  for (let from = 0; from < found.length; from += GROUP) {
    const group = found.slice(from, from + GROUP).map(({ path }) => entryUnlessGone(path, names));
    for (const entry of await Promise.all(group)) if (entry) entries.push(entry);
  }
  return entries;
}

async function entryUnlessGone(path: string, names: NameTable): Promise<EntryInit | undefined> {
  try {
    return await readEntry(path, names);
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
