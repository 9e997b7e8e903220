import { tmpdir } from "node:os";
import { expect, it } from "vitest";
import { assertFreeSpace, reserveBytesOf } from "./free-space.ts";

const GIB = 1024 ** 3;

it.each([
  [10 * GIB, GIB],
  [50 * GIB, GIB],
  [1000 * GIB, 20 * GIB],
])("of %d bytes keeps %d back", (total, reserve) => {
  expect(reserveBytesOf(total)).toBe(reserve);
});

it("takes a disk with room, and refuses one without, saying nothing of this machine's paths to callers", async () => {
  await assertFreeSpace(tmpdir(), { reserveBytes: 0 });
  const refused = { code: "disk_space_unavailable", publicMessage: "There is not enough free disk space on the machine" };
  await expect(assertFreeSpace(tmpdir(), { reserveBytes: 2 ** 60 })).rejects.toMatchObject(refused);
  await expect(assertFreeSpace(tmpdir(), { reserveBytes: 0, neededBytes: 2 ** 60 })).rejects.toMatchObject(refused);
});
