import { create, fromBinary, toBinary, toJsonString } from "@bufbuild/protobuf";
import { FileType, ListDirResponseSchema } from "@skerry/wire/filesystem";
import { expect, it } from "vitest";
import type { Entry } from "../entry.ts";
import { type Encoding, encodeEntries } from "./encode-entries.ts";

const FILE: Entry = {
  name: "a",
  path: "/d/a",
  type: FileType.FILE,
  size: 5n,
  mode: 0o644,
  permissions: "-rw-r--r--",
  owner: "user",
  group: "users",
  modifiedTime: { seconds: 1_700_000_000n, nanos: 0 },
  metadata: {},
  isSymlink: false,
};
const withTime = (seconds: bigint, nanos: number): Entry => ({ ...FILE, modifiedTime: { seconds, nanos } });

/** Covers all default values, kinds of text and lengths of times. */
const ENTRIES: readonly Entry[] = [
  FILE,
  { ...FILE, type: FileType.DIRECTORY, size: 9_007_199_254_740_993n, mode: 0, owner: "", group: "" },
  { ...FILE, type: FileType.UNSPECIFIED, size: 0n, isSymlink: true, symlinkTarget: "", permissions: "Lrwxrwxrwx" },
  { ...FILE, isSymlink: true, symlinkTarget: '/quo"te\\\n\u0001/\u{1f600}\ufffd' },
  { ...FILE, name: 'quo"te\\\n\u0000\u007f\u2028', path: "/\ud83d\ude00/\u00e9", owner: 'o"', group: "\\" },
  { ...FILE, metadata: { key: "value", 'quo"te': "", constructor: "x", ...Object.fromEntries([["__proto__", "y"]]) } },
  withTime(0n, 1),
  withTime(-1n, 999_999_999),
  withTime(-62_135_596_800n, 0),
  withTime(253_402_300_799n, 999_999_999),
  withTime(1n, 120_000_000),
  withTime(1n, 120_340_000),
  withTime(1n, 120_340_567),
];

async function bodyOf(batches: readonly (readonly Entry[])[], encoding: Encoding): Promise<Buffer> {
  async function* all() {
    yield* batches;
  }
  const pieces: Uint8Array[] = [];
  for await (const piece of encodeEntries(all(), encoding)) pieces.push(piece);
  return Buffer.concat(pieces);
}

const messageOf = (entries: readonly Entry[]) => create(ListDirResponseSchema, { entries: [...entries] });

it("writes the JSON that the library writes, byte for byte", async () => {
  const expected = toJsonString(ListDirResponseSchema, messageOf(ENTRIES));
  expect((await bodyOf([ENTRIES], "json")).toString()).toBe(expected);
  expect((await bodyOf([ENTRIES.slice(0, 1), ENTRIES.slice(1, 4), ENTRIES.slice(4)], "json")).toString()).toBe(expected);
});

it("writes the bytes that the library writes", async () => {
  const body = await bodyOf([ENTRIES.slice(0, 3), ENTRIES.slice(3)], "binary");
  expect(body).toEqual(Buffer.from(toBinary(ListDirResponseSchema, messageOf(ENTRIES))));
});

it("writes an empty message for an empty directory", async () => {
  expect((await bodyOf([], "json")).toString()).toBe("{}");
  expect(fromBinary(ListDirResponseSchema, await bodyOf([], "binary")).entries).toEqual([]);
});

it("hands out pieces as it goes, not one at the end", async () => {
  const names = Array.from({ length: 2_000 }, (_, at) => ({ ...FILE, name: `n${at}` }));
  let taken = 0;
  async function* batches() {
    for (const name of names) {
      taken++;
      yield [name];
    }
  }
  const pieces = encodeEntries(batches(), "json");
  await pieces.next();
  expect(taken).toBeLessThan(names.length);
  await pieces.return(undefined);
});
