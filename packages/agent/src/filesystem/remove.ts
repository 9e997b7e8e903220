import { rm } from "node:fs/promises";
import type { HandlerContext } from "@connectrpc/connect";
import type { RemoveRequest } from "@skerry/wire/filesystem";
import { type FilesystemContext, resolvePath } from "./context.ts";
import { fileError } from "./file-error.ts";

/** Removes recursively. Succeeds when the path does not exist. */
export async function remove(
  filesystem: FilesystemContext,
  request: RemoveRequest,
  context: HandlerContext,
): Promise<Record<never, never>> {
  const { path } = resolvePath(filesystem, request.path, context);
  try {
    await rm(path, { recursive: true, force: true });
  } catch (error) {
    throw fileError("error removing file or directory", error);
  }
  return {};
}
