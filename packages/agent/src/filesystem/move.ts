import { rename } from "node:fs/promises";
import { posix } from "node:path";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { asError, errnoOf } from "@skerry/base";
import type { MoveRequest } from "@skerry/wire/filesystem";
import { type FilesystemContext, resolvePath } from "./context.ts";
import type { EntryInit } from "./entry.ts";
import { makeDirectories } from "./make-parents.ts";
import { entryOf } from "./stat.ts";
import { currentHub } from "./watching/current-hub.ts";

/** rename(2) and nothing around it: what that refuses (another file system, a full directory) is refused here. */
export async function move(filesystem: FilesystemContext, request: MoveRequest, context: HandlerContext): Promise<{ entry: EntryInit }> {
  const { path: source } = resolvePath(filesystem, request.source, context);
  const { path: destination, user } = resolvePath(filesystem, request.destination, context);
  try {
    await makeDirectories(posix.dirname(destination), user);
  } catch (error) {
    throw new ConnectError(`error ensuring directories: ${asError(error).message}`, Code.Internal);
  }
  try {
    await rename(source, destination);
  } catch (error) {
    if (errnoOf(error) === "ENOENT") throw new ConnectError(`source file not found: ${source}`, Code.NotFound);
    throw new ConnectError(`error renaming: ${asError(error).message}`, Code.Internal);
  }
  // A directory that came into a watched one is watched before the next request can write into it.
  await currentHub()?.settle();
  return { entry: await entryOf(destination) };
}
