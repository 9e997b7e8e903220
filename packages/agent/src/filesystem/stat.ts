import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { errnoOf } from "@skerry/base";
import type { StatRequest } from "@skerry/wire/filesystem";
import { NameTable } from "../accounts/accounts.ts";
import { type FilesystemContext, resolvePath } from "./context.ts";
import { type Entry, readEntry } from "./entry.ts";
import { fileError } from "./file-error.ts";

export async function stat(filesystem: FilesystemContext, request: StatRequest, context: HandlerContext): Promise<{ entry: Entry }> {
  const { path } = resolvePath(filesystem, request.path, context);
  return { entry: await entryOf(path) };
}

/** Also used for the responses of MakeDir and Move. */
export async function entryOf(path: string): Promise<Entry> {
  try {
    return await readEntry(path, new NameTable());
  } catch (error) {
    if (errnoOf(error) === "ENOENT") throw new ConnectError(`file not found: ${path}`, Code.NotFound);
    throw fileError("error getting file info", error);
  }
}
