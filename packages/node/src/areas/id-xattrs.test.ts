import { expect, it } from "vitest";
import { shiftAccessList, shiftCapability } from "./id-xattrs.privileged.ts";

const BASE = 2_000_000_000;

it("shifts the ids of users and groups in an access list, and nothing else", () => {
  const list = (user: number, group: number) => {
    const bytes = Buffer.alloc(4 + 4 * 8);
    bytes.writeUInt32LE(2);
    for (const [index, [tag, id]] of [
      [0x01, 0xffffffff],
      [0x02, user],
      [0x08, group],
      [0x20, 0xffffffff],
    ].entries()) {
      bytes.writeUInt16LE(tag as number, 4 + index * 8);
      bytes.writeUInt32LE(id as number, 8 + index * 8);
    }
    return bytes;
  };
  expect(shiftAccessList(list(BASE + 1000, BASE + 7), BASE)).toEqual(list(1000, 7));
  // What no id of this sandbox is becomes its root's, as owners do.
  expect(shiftAccessList(list(3, BASE), BASE)).toEqual(list(0, 0));
  expect(shiftAccessList(Buffer.alloc(3), BASE)).toEqual(Buffer.alloc(3));
});

it("shifts the root of a capability that has one", () => {
  const third = (root: number) => {
    const bytes = Buffer.alloc(24, 1);
    bytes.writeUInt32LE(0x03000001);
    bytes.writeUInt32LE(root, 20);
    return bytes;
  };
  expect(shiftCapability(third(BASE), BASE)).toEqual(third(0));
  const second = Buffer.alloc(20, 1);
  second.writeUInt32LE(0x02000001);
  expect(shiftCapability(second, BASE)).toEqual(second);
});
