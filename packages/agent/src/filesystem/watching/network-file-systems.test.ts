import { expect, it } from "vitest";
import { isNetworkFileSystem } from "./network-file-systems.ts";

it("knows file systems that others change unheard: NFS, CIFS, SMB, SMB2 and FUSE", () => {
  for (const type of [0x6969, 0xff534d42, 0xff534d42 | 0, 0x517b, 0xfe534d42, 0x65735546]) expect(isNetworkFileSystem(type)).toBe(true);
  for (const type of [0xef53, 0x01021994, 0x794c7630, 0x01021997]) expect(isNetworkFileSystem(type)).toBe(false);
});
