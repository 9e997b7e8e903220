import { EventType } from "@skerry/wire/filesystem";
import { IN } from "../../native/inotify-event.ts";

/** In the order in which one inotify event with several bits is reported. */
const TYPES: readonly (readonly [mask: number, type: EventType])[] = [
  [IN.CREATE | IN.MOVED_TO, EventType.CREATE],
  [IN.MOVED_FROM, EventType.RENAME],
  [IN.ATTRIB, EventType.CHMOD],
  [IN.MODIFY, EventType.WRITE],
  [IN.DELETE, EventType.REMOVE],
];

/** What an inotify event reports about a file in a watched directory. */
export function eventTypes(mask: number): EventType[] {
  return TYPES.filter(([bits]) => (mask & bits) !== 0).map(([, type]) => type);
}

/** What an inotify event reports about the watched root itself. */
export function rootEventTypes(mask: number): EventType[] {
  const types = mask & IN.ATTRIB ? [EventType.CHMOD] : [];
  // Unmounting its file system removes the root too.
  if (mask & (IN.DELETE_SELF | IN.UNMOUNT)) types.push(EventType.REMOVE);
  if (mask & IN.MOVE_SELF) types.push(EventType.RENAME);
  return types;
}

/** All events but those for opening, reading and closing. */
export const WATCHED =
  IN.CREATE | IN.MOVED_TO | IN.MOVED_FROM | IN.ATTRIB | IN.MODIFY | IN.DELETE | IN.DELETE_SELF | IN.MOVE_SELF | IN.ONLYDIR;
