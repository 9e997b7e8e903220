import type { HandlerContext } from "@connectrpc/connect";
import type { CreateWatcherRequest } from "@skerry/wire/filesystem";
import type { FilesystemContext } from "./context.ts";
import { openWatcher } from "./watching/open-watcher.ts";
import type { WatcherTable } from "./watching/watcher-table.ts";

export async function createWatcher(
  filesystem: FilesystemContext & { readonly watchers: WatcherTable },
  request: CreateWatcherRequest,
  context: HandlerContext,
): Promise<{ watcherId: string }> {
  return { watcherId: filesystem.watchers.add(await openWatcher(filesystem, request, context)) };
}
