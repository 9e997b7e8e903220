import { expect, it } from "vitest";
import { parseTypes } from "./local-mounts.ts";

it("reads the types of mounts, whatever their paths hold", () => {
  const mounts = "none / 9p rw,trans=fd 0 0\nnone /proc proc rw 0 0\nsshfs#a /mnt/with\\040blank fuse.sshfs rw 0 0\n";
  expect(parseTypes(mounts)).toEqual(["9p", "proc", "fuse.sshfs"]);
});
