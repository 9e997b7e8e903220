import { EventType } from "@skerry/wire/filesystem";
import { IN } from "../../native/inotify-event.ts";

/** In the order in which one record that says several things is told. */
const TYPES: readonly (readonly [mask: number, type: EventType])[] = [
  [IN.CREATE | IN.MOVED_TO, EventType.CREATE],
  [IN.MOVED_FROM, EventType.RENAME],
  [IN.ATTRIB, EventType.CHMOD],
  [IN.MODIFY, EventType.WRITE],
  [IN.DELETE, EventType.REMOVE],
];

/** What a record says about something in a watched directory. */
export function eventTypes(mask: number): EventType[] {
  return TYPES.filter(([bits]) => (mask & bits) !== 0).map(([, type]) => type);
}

/** What a record says about the watched root itself. */
export function rootEventTypes(mask: number): EventType[] {
  const types = mask & IN.ATTRIB ? [EventType.CHMOD] : [];
  // The end of its file system is the end of the root, too.
  if (mask & (IN.DELETE_SELF | IN.UNMOUNT)) types.push(EventType.REMOVE);
  if (mask & IN.MOVE_SELF) types.push(EventType.RENAME);
  return types;
}

/** Everything but opening, reading and closing. */
export const WATCHED =
  IN.CREATE | IN.MOVED_TO | IN.MOVED_FROM | IN.ATTRIB | IN.MODIFY | IN.DELETE | IN.DELETE_SELF | IN.MOVE_SELF | IN.ONLYDIR;
