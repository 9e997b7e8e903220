import { stat, statfs } from "node:fs/promises";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { asError, errnoOf } from "@skerry/base";
import type { CreateWatcherRequest, WatchDirRequest } from "@skerry/wire/filesystem";
import { loadLibc } from "../../native/libc.ts";
import { type FilesystemContext, resolvePath } from "../context.ts";
import { isNetworkFileSystem, kernelMounts } from "../mounts.ts";
import { currentHub, setCurrentHub } from "./current-hub.ts";
import { WatchHub } from "./watch-hub.ts";
import { addError, type Watcher } from "./watcher.ts";

export interface OpenWatcher {
  readonly watcher: Watcher;
  close(): void;
}

/** Shared by WatchDir and CreateWatcher. The returned watcher reports every event from after the call. */
export async function openWatcher(
  filesystem: FilesystemContext,
  request: WatchDirRequest | CreateWatcherRequest,
  context: HandlerContext,
): Promise<OpenWatcher> {
  const { path } = resolvePath(filesystem, request.path, context);
  await assertDirectory(path);
  if (!request.allowNetworkMounts) await refuseNetworkMount(path);
  await loadLibc();
  const root = Buffer.from(path.length > 1 ? path.replace(/\/+$/, "") : path, "utf8").toString("latin1") || "/";
  const { recursive, includeEntry } = request;
  const options = { root, recursive, includeEntry, skipped: recursive ? kernelMounts(root) : new Set<string>() };
  try {
    const hub = currentHub() ?? new WatchHub();
    const opening = hub.watch(options, context.signal);
    setCurrentHub(hub);
    const watcher = await opening;
    return { watcher, close: () => hub.close(watcher) };
  } catch (error) {
    if (error instanceof ConnectError || context.signal.aborted) throw error;
    if (errnoOf(error) === "ENOENT") throw notFound(path);
    throw addError(root, error);
  }
}

async function assertDirectory(path: string): Promise<void> {
  let isDirectory: boolean;
  try {
    isDirectory = (await stat(path)).isDirectory();
  } catch (error) {
    if (errnoOf(error) === "ENOENT") throw notFound(path);
    throw new ConnectError(`error getting file info: ${asError(error).message}`, Code.Internal);
  }
  if (!isDirectory) throw new ConnectError(`path ${path} not a directory`, Code.InvalidArgument);
}

async function refuseNetworkMount(path: string): Promise<void> {
  let type: number;
  try {
    ({ type } = await statfs(path));
  } catch (error) {
    throw new ConnectError(`error getting file system of ${path}: ${asError(error).message}`, Code.Internal);
  }
  if (isNetworkFileSystem(type)) throw new ConnectError(`cannot watch path on network filesystem: ${path}`, Code.InvalidArgument);
}

function notFound(path: string): ConnectError {
  return new ConnectError(`path ${path} not found: no such file or directory`, Code.NotFound);
}
