import { rm } from "node:fs/promises";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { asError } from "@skerry/base";
import type { RemoveRequest } from "@skerry/wire/filesystem";
import { type FilesystemContext, resolvePath } from "./context.ts";

/** Recursive; a path that is not there is removed already. */
export async function remove(
  filesystem: FilesystemContext,
  request: RemoveRequest,
  context: HandlerContext,
): Promise<Record<never, never>> {
  const { path } = resolvePath(filesystem, request.path, context);
  try {
    await rm(path, { recursive: true, force: true });
  } catch (error) {
    throw new ConnectError(`error removing file or directory: ${asError(error).message}`, Code.Internal);
  }
  return {};
}
