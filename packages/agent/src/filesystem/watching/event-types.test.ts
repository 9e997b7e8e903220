import { EventType } from "@skerry/wire/filesystem";
import { expect, it } from "vitest";
import { IN } from "../../native/inotify-event.ts";
import { eventTypes, rootEventTypes, WATCHED } from "./event-types.ts";

it("names each kind of change, and nothing for opening, reading and closing", () => {
  expect(eventTypes(IN.CREATE)).toEqual([EventType.CREATE]);
  expect(eventTypes(IN.MOVED_TO | IN.ISDIR)).toEqual([EventType.CREATE]);
  expect(eventTypes(IN.MOVED_FROM)).toEqual([EventType.RENAME]);
  expect(eventTypes(IN.MODIFY)).toEqual([EventType.WRITE]);
  expect(eventTypes(IN.ATTRIB)).toEqual([EventType.CHMOD]);
  expect(eventTypes(IN.DELETE)).toEqual([EventType.REMOVE]);
  const ACCESS_CLOSE_OPEN = 0x01 | 0x08 | 0x10 | 0x20;
  expect(eventTypes(ACCESS_CLOSE_OPEN)).toEqual([]);
  expect(WATCHED & ACCESS_CLOSE_OPEN).toBe(0);
});

it("orders several kinds in one record as create, rename, chmod, write, remove", () => {
  expect(eventTypes(IN.DELETE | IN.MODIFY | IN.ATTRIB | IN.MOVED_FROM | IN.CREATE)).toEqual([
    EventType.CREATE,
    EventType.RENAME,
    EventType.CHMOD,
    EventType.WRITE,
    EventType.REMOVE,
  ]);
});

it("tells the end of the root as REMOVE, its move as RENAME", () => {
  expect(rootEventTypes(IN.DELETE_SELF)).toEqual([EventType.REMOVE]);
  expect(rootEventTypes(IN.UNMOUNT)).toEqual([EventType.REMOVE]);
  expect(rootEventTypes(IN.MOVE_SELF)).toEqual([EventType.RENAME]);
  expect(rootEventTypes(IN.ATTRIB | IN.ISDIR)).toEqual([EventType.CHMOD]);
  expect(rootEventTypes(IN.IGNORED)).toEqual([]);
});
