import { expect, it } from "vitest";
import { IN, parseInotifyEvents } from "./inotify-event.ts";

function record(wd: number, mask: number, cookie: number, name: Buffer): Buffer {
  const padded = Buffer.alloc(name.length === 0 ? 0 : Math.ceil((name.length + 1) / 16) * 16);
  name.copy(padded);
  const header = Buffer.alloc(16);
  header.writeInt32LE(wd, 0);
  header.writeUInt32LE(mask, 4);
  header.writeUInt32LE(cookie, 8);
  header.writeUInt32LE(padded.length, 12);
  return Buffer.concat([header, padded]);
}

it("reads records with and without names, of any bytes and the greatest length", () => {
  const long = Buffer.alloc(255, "x");
  const bytes = Buffer.concat([
    record(1, IN.CREATE | IN.ISDIR, 0, Buffer.from("dir")),
    record(1, IN.ATTRIB | IN.ISDIR, 0, Buffer.alloc(0)),
    record(2, IN.MOVED_TO, 77, Buffer.from([0x66, 0xff, 0xe2])),
    record(3, IN.MODIFY, 0, long),
    record(-1, IN.Q_OVERFLOW, 0, Buffer.alloc(0)),
  ]);
  expect(parseInotifyEvents(bytes)).toEqual([
    { wd: 1, mask: 0x4000_0100, cookie: 0, name: "dir" },
    { wd: 1, mask: 0x4000_0004, cookie: 0, name: "" },
    { wd: 2, mask: 0x80, cookie: 77, name: "f\xff\xe2" },
    { wd: 3, mask: 2, cookie: 0, name: long.toString() },
    { wd: -1, mask: 0x4000, cookie: 0, name: "" },
  ]);
});
