import type { ServiceImpl } from "@connectrpc/connect";
import type { Filesystem } from "@skerry/wire/filesystem";
import type { FilesystemContext } from "./context.ts";
import { createWatcher } from "./create-watcher.ts";
import { getWatcherEvents } from "./get-watcher-events.ts";
import { listDir } from "./list-dir.ts";
import { makeDir } from "./make-dir.ts";
import { move } from "./move.ts";
import { remove } from "./remove.ts";
import { removeWatcher } from "./remove-watcher.ts";
import { stat } from "./stat.ts";
import { watchDir } from "./watch-dir.ts";
import { WatcherTable } from "./watching/watcher-table.ts";

export function filesystemService(filesystem: FilesystemContext): ServiceImpl<typeof Filesystem> {
  const watchers = new WatcherTable();
  return {
    stat: (request, context) => stat(filesystem, request, context),
    makeDir: (request, context) => makeDir(filesystem, request, context),
    move: (request, context) => move(filesystem, request, context),
    listDir: (request, context) => listDir(filesystem, request, context),
    remove: (request, context) => remove(filesystem, request, context),
    watchDir: (request, context) => watchDir(filesystem, request, context),
    createWatcher: (request, context) => createWatcher({ ...filesystem, watchers }, request, context),
    getWatcherEvents: (request) => getWatcherEvents(watchers, request),
    removeWatcher: (request) => removeWatcher(watchers, request),
  };
}
