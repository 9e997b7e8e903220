import { stat } from "node:fs/promises";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { asError, errnoOf } from "@skerry/base";
import type { MakeDirRequest } from "@skerry/wire/filesystem";
import { type FilesystemContext, resolvePath } from "./context.ts";
import type { EntryInit } from "./entry.ts";
import { makeDirectories } from "./make-parents.ts";
import { entryOf } from "./stat.ts";

export async function makeDir(
  filesystem: FilesystemContext,
  request: MakeDirRequest,
  context: HandlerContext,
): Promise<{ entry: EntryInit }> {
  const { path, user } = resolvePath(filesystem, request.path, context);
  await refuseExisting(path);
  try {
    await makeDirectories(path, user);
  } catch (error) {
    throw new ConnectError(`error creating directory: ${asError(error).message}`, Code.Internal);
  }
  return { entry: await entryOf(path) };
}

async function refuseExisting(path: string): Promise<void> {
  let isDirectory: boolean;
  try {
    isDirectory = (await stat(path)).isDirectory();
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return;
    const reason = errnoOf(error) === "ENOTDIR" ? `stat ${path}: not a directory` : asError(error).message;
    throw new ConnectError(`error getting file info: ${reason}`, Code.Internal);
  }
  if (isDirectory) throw new ConnectError(`directory already exists: ${path}`, Code.AlreadyExists);
  throw new ConnectError(`path already exists but it is not a directory: ${path}`, Code.InvalidArgument);
}
