import type { MessageInitShape } from "@bufbuild/protobuf";
import type { GetWatcherEventsRequest, GetWatcherEventsResponseSchema } from "@skerry/wire/filesystem";
import { currentHub } from "./watching/current-hub.ts";
import { eventMessage } from "./watching/event-buffer.ts";
import type { WatcherTable } from "./watching/watcher-table.ts";

/** All events from before the call that were not fetched yet. */
export async function getWatcherEvents(
  watchers: WatcherTable,
  request: GetWatcherEventsRequest,
): Promise<MessageInitShape<typeof GetWatcherEventsResponseSchema>> {
  const { watcher } = watchers.get(request.watcherId);
  await currentHub()?.settle();
  return { events: await Promise.all(watcher.buffer.takeAll().map(eventMessage)) };
}
