import type { RemoveWatcherRequest } from "@skerry/wire/filesystem";
import type { WatcherTable } from "./watching/watcher-table.ts";

export function removeWatcher(watchers: WatcherTable, request: RemoveWatcherRequest): Record<never, never> {
  watchers.remove(request.watcherId);
  return {};
}
