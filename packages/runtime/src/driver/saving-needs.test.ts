import { describe, expect, it } from "vitest";
import type { DeletedFile } from "../deleted-files.privileged.ts";
import { MAX_DELETED_BYTES, refusalIn, savingNeeds } from "./saving-needs.ts";

const MIB = 1024 * 1024;
const file = (bytes: number, more: Partial<DeletedFile> = {}): DeletedFile => ({
  path: "/tmp/a",
  kind: "file",
  bytes,
  storedBytes: bytes,
  ...more,
});

describe("what it takes to save deleted files", () => {
  it("is nothing when there are no deleted files, or only empty ones", () => {
    for (const files of [[], [file(0)], [file(4096, { kind: "folder" })]]) {
      expect(savingNeeds(files)).toEqual({ memoryBytes: 0, diskBytes: 0, cause: "" });
    }
  });

  it("is eighteen times their size in memory, and their holes on disk", () => {
    const { memoryBytes, diskBytes, cause } = savingNeeds([file(10 * MIB), file(20 * MIB, { path: "/tmp/b", storedBytes: MIB })]);
    expect(memoryBytes).toBe((18 * 30 + 32) * MIB);
    expect(diskBytes).toBe(19 * MIB);
    expect(cause).toBe('processes hold the deleted file "/tmp/b" (20971520 bytes) and 1 others, 31457280 bytes together open');
  });

  it.each([
    ["a file that is too large", file(MAX_DELETED_BYTES + 1), /"\/tmp\/a" \(134217729 bytes\).*up to 134217728 bytes/],
    ["a hole that is too large", file(10 * 1024 * MIB, { storedBytes: 0 }), /10737418240 bytes/],
    ["a link", file(1, { kind: "link", path: "/tmp/l" }), /"\/tmp\/l" open, a deleted link/],
    ["a name that the host can't make longer", file(1, { path: `/tmp/${"é".repeat(120)}` }), /name is too long/],
    ["a path that nobody can tell", file(200 * MIB, { path: "" }), /\(a path of more than 4,095 bytes\)/],
    ["a path that is made to be shown", file(200 * MIB, { path: '/tmp/\u001b[31m\n"x\\\u202e' }), /"\/tmp\/\?\[31m\?\?x\?\?" \(/],
    ["a path that is long", file(200 * MIB, { path: `/${"d/".repeat(1000)}end` }), /"…[d/]{197}end" \(/],
  ])("refuses %s", (_what, one, message) => {
    expect(() => savingNeeds([one])).toThrow(
      expect.objectContaining({ code: "state_not_savable", publicMessage: expect.stringMatching(message) }),
    );
  });

  it("recognises gVisor's message about files that only gVisor knows, and no other message", () => {
    const words = 'panic: gofer.dentry("root/a\\"b").beforeSave: dead dentry is not saved in fs.savedDeletedOpenDentries (deleted=true)';
    expect(refusalIn(`runsc\n${words}\ngoroutine 1`)).toMatchObject({
      code: "state_not_savable",
      publicMessage: 'a process holds "/root/a??b" open, a deleted link, FIFO or socket',
    });
    expect(refusalIn("checkpoint failed: no space left on device")).toBeUndefined();
  });
});
