import { expect, it } from "vitest";
import { isNetworkFileSystem, parseMounts } from "./mounts.ts";

it("reads types and paths of mounts, whatever characters the paths hold", () => {
  const text =
    "none / 9p rw,trans=fd 0 0\nnone /proc proc rw 0 0\nsys /odd\\040name sysfs ro 0 0\nsshfs#a /mnt/with\\040blank fuse.sshfs rw 0 0\n";
  expect(parseMounts(text)).toEqual([
    { path: "/", type: "9p" },
    { path: "/proc", type: "proc" },
    { path: "/odd name", type: "sysfs" },
    { path: "/mnt/with blank", type: "fuse.sshfs" },
  ]);
});

it("recognises file systems on which inotify misses remote changes: NFS, CIFS, SMB, SMB2 and FUSE", () => {
  for (const type of [0x6969, 0xff534d42, 0xff534d42 | 0, 0x517b, 0xfe534d42, 0x65735546]) expect(isNetworkFileSystem(type)).toBe(true);
  for (const type of [0xef53, 0x01021994, 0x794c7630, 0x01021997]) expect(isNetworkFileSystem(type)).toBe(false);
});
