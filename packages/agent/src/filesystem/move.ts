import { rename } from "node:fs/promises";
import { posix } from "node:path";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { errnoOf } from "@skerry/base";
import type { MoveRequest } from "@skerry/wire/filesystem";
import { type FilesystemContext, resolvePath } from "./context.ts";
import type { Entry } from "./entry.ts";
import { fileError } from "./file-error.ts";
import { makeDirectories } from "./make-parents.ts";
import { entryOf } from "./stat.ts";
import { currentHub } from "./watching/current-hub.ts";

/** A plain rename(2). What the kernel refuses (another file system, a directory that is not empty) fails here too. */
export async function move(filesystem: FilesystemContext, request: MoveRequest, context: HandlerContext): Promise<{ entry: Entry }> {
  const { path: source } = resolvePath(filesystem, request.source, context);
  const { path: destination, user } = resolvePath(filesystem, request.destination, context);
  try {
    await makeDirectories(posix.dirname(destination), user);
  } catch (error) {
    throw fileError("error ensuring directories", error);
  }
  try {
    await rename(source, destination);
  } catch (error) {
    if (errnoOf(error) === "ENOENT") throw new ConnectError(`source file not found: ${source}`, Code.NotFound);
    throw fileError("error renaming", error);
  }
  // A directory that moved into a watched tree must be watched before the next request can write into it.
  await currentHub()?.settle();
  return { entry: await entryOf(destination) };
}
