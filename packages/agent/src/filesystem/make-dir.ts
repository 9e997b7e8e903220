import { stat } from "node:fs/promises";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { errnoOf } from "@skerry/base";
import type { MakeDirRequest } from "@skerry/wire/filesystem";
import { type FilesystemContext, resolvePath } from "./context.ts";
import type { Entry } from "./entry.ts";
import { fileError } from "./file-error.ts";
import { makeDirectories } from "./make-parents.ts";
import { entryOf } from "./stat.ts";

export async function makeDir(filesystem: FilesystemContext, request: MakeDirRequest, context: HandlerContext): Promise<{ entry: Entry }> {
  const { path, user } = resolvePath(filesystem, request.path, context);
  await refuseExisting(path);
  try {
    await makeDirectories(path, user);
  } catch (error) {
    throw fileError("error creating directory", error);
  }
  return { entry: await entryOf(path) };
}

async function refuseExisting(path: string): Promise<void> {
  let isDirectory: boolean;
  try {
    isDirectory = (await stat(path)).isDirectory();
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return;
    if (errnoOf(error) === "ENOTDIR") throw new ConnectError(`error getting file info: stat ${path}: not a directory`, Code.Internal);
    throw fileError("error getting file info", error);
  }
  if (isDirectory) throw new ConnectError(`directory already exists: ${path}`, Code.AlreadyExists);
  throw new ConnectError(`path already exists but it is not a directory: ${path}`, Code.InvalidArgument);
}
