// What every implementation of the port BlobStore has to do. The folder runs it; a store of objects elsewhere will have to.

import { createHash, randomBytes } from "node:crypto";
import { setImmediate as turn } from "node:timers/promises";
import { type BlobDigest, type BlobStore, parseBlobDigest } from "@skerry/blobs";
import { afterAll, beforeEach, describe, expect, it } from "vitest";

export interface BlobStoreContractOptions {
  readonly name: string;
  /** An empty store. */
  open(): Promise<BlobStore>;
  close(): Promise<void>;
}

const MIB = 2 ** 20;

export function blobStoreContract(options: BlobStoreContractOptions): void {
  describe(`blob store contract: ${options.name}`, () => {
    let store: BlobStore;
    beforeEach(async () => {
      store = await options.open();
    });
    afterAll(() => options.close());

    testPut(() => store);
    testGet(() => store);
    testList(() => store);
    testDelete(() => store);
    it.each(HOSTILE)("refuses %j as a digest, everywhere", async (text) => {
      const digest = text as BlobDigest;
      const refused = { code: "blob_digest_invalid" };
      expect(() => parseBlobDigest(text)).toThrow(expect.objectContaining(refused));
      await expect(store.put(stream("a"), { expected: digest })).rejects.toMatchObject(refused);
      for (const call of [store.get(digest), store.size(digest), store.delete(digest), store.list({ after: digest })]) {
        await expect(call).rejects.toMatchObject(refused);
      }
      expect(await store.list()).toEqual([]);
    });
  });
}

const HOSTILE = [
  "",
  "sha256:",
  "sha256:abc",
  `sha256:${"../".repeat(21)}a`,
  `sha256:${"A".repeat(64)}`,
  `sha256:${"a".repeat(64)}\n`,
  `sha256:${"a".repeat(65)}`,
  `md5:${"a".repeat(64)}`,
  `sha256:..${"/".repeat(62)}`,
  "../../etc/passwd",
];

const digestOf = (bytes: string | Uint8Array) => parseBlobDigest(`sha256:${createHash("sha256").update(bytes).digest("hex")}`);

async function* stream(...pieces: (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const piece of pieces) yield Buffer.from(piece);
}

async function* failing(...pieces: string[]): AsyncGenerator<Uint8Array> {
  yield* stream(...pieces);
  throw new Error("the source failed");
}

async function read(bytes: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of bytes) pieces.push(piece);
  return Buffer.concat(pieces);
}

function testPut(store: () => BlobStore): void {
  it("stores bytes under their digest, whatever pieces they come in", async () => {
    expect(await store().put(stream("one ", "", "blob"))).toBe(digestOf("one blob"));
    expect(await store().put(stream("one blob"), { expected: digestOf("one blob") })).toBe(digestOf("one blob"));
    expect((await read(await store().get(digestOf("one blob")))).toString()).toBe("one blob");
    expect(await store().put(stream())).toBe(digestOf(""));
    expect(await read(await store().get(digestOf("")))).toHaveLength(0);
    expect(await store().list()).toEqual([digestOf("one blob"), digestOf("")].sort());
  });

  it("refuses bytes that are not those that were named, and leaves nothing", async () => {
    await expect(store().put(stream("other"), { expected: digestOf("wanted") })).rejects.toMatchObject({ code: "blob_mismatch" });
    expect(await store().list()).toEqual([]);
  });

  it("leaves nothing of a source that fails, and keeps a blob that was there", async () => {
    await store().put(stream("whole"));
    await expect(store().put(failing("who", "le"))).rejects.toThrow("the source failed");
    expect(await store().list()).toEqual([digestOf("whole")]);
    expect((await read(await store().get(digestOf("whole")))).toString()).toBe("whole");
  });

  it("shows a blob only when all of it is there", async () => {
    const going = Promise.withResolvers<void>();
    async function* slow(): AsyncGenerator<Uint8Array> {
      yield Buffer.from("be");
      await going.promise;
      yield Buffer.from("gun");
    }
    const put = store().put(slow());
    await turn();
    expect(await store().list()).toEqual([]);
    expect(await store().size(digestOf("begun"))).toBeUndefined();
    going.resolve();
    await put;
    expect(await store().size(digestOf("begun"))).toBe(5);
  });

  it("takes one blob from several callers at once", async () => {
    const bytes = randomBytes(3 * MIB);
    const puts = Array.from({ length: 8 }, () => store().put(stream(bytes.subarray(0, MIB), bytes.subarray(MIB))));
    expect(new Set(await Promise.all(puts))).toEqual(new Set([digestOf(bytes)]));
    expect(await store().list()).toEqual([digestOf(bytes)]);
    expect((await read(await store().get(digestOf(bytes)))).equals(bytes)).toBe(true);
  });

  it("reads its source no faster than it stores, and keeps little of it in memory", async () => {
    const piece = randomBytes(MIB);
    const before = process.memoryUsage().arrayBuffers;
    let most = 0;
    async function* large(): AsyncGenerator<Uint8Array> {
      for (let count = 0; count < 160; count += 1) {
        yield Buffer.from(piece);
        most = Math.max(most, process.memoryUsage().arrayBuffers - before);
      }
    }
    const digest = await store().put(large());
    expect(await store().size(digest)).toBe(160 * MIB);
    expect(most).toBeLessThan(100 * MIB);
    await store().delete(digest);
  });
}

function testGet(store: () => BlobStore): void {
  it("gives parts of a blob", async () => {
    const bytes = randomBytes(2 * MIB + 7);
    const digest = await store().put(stream(bytes));
    for (const [offset, length] of [
      [0, 0],
      [0, 1],
      [1, MIB],
      [MIB - 1, MIB + 2],
      [bytes.length - 1, 1],
      [bytes.length, 0],
      [0, bytes.length],
    ] as const) {
      const part = await read(await store().get(digest, { offset, length }));
      expect(part.equals(bytes.subarray(offset, offset + length)), `${length} from ${offset}`).toBe(true);
    }
  });

  it.each([
    { offset: -1, length: 1 },
    { offset: 0, length: -1 },
    { offset: 0, length: 5 },
    { offset: 5, length: 0 },
    { offset: 0.5, length: 1 },
    { offset: 0, length: Number.POSITIVE_INFINITY },
    { offset: Number.NaN, length: 1 },
  ])("refuses a part that is not in the blob: %j", async (range) => {
    const digest = await store().put(stream("four"));
    await expect(store().get(digest, range)).rejects.toMatchObject({ code: "blob_range_invalid" });
  });

  it("says that there is no such blob", async () => {
    const digest = digestOf("missing");
    expect(await store().size(digest)).toBeUndefined();
    await expect(store().get(digest)).rejects.toMatchObject({ code: "blob_missing" });
    await expect(store().get(digest, { offset: 0, length: 1 })).rejects.toMatchObject({ code: "blob_missing" });
  });

  it("lets a reader stop in the middle", async () => {
    const digest = await store().put(stream(randomBytes(4 * MIB)));
    for await (const piece of await store().get(digest)) {
      expect(piece.length).toBeGreaterThan(0);
      break;
    }
    expect(await store().size(digest)).toBe(4 * MIB);
  });
}

function testList(store: () => BlobStore): void {
  it("lists blobs by pages, in order", async () => {
    const digests: BlobDigest[] = [];
    for (let count = 0; count < 25; count += 1) digests.push(await store().put(stream(`blob ${count}`)));
    digests.sort();
    expect(await store().list()).toEqual(digests);
    const paged: BlobDigest[] = [];
    for (
      let page = await store().list({ limit: 7 });
      page.length > 0;
      page = await store().list({ limit: 7, after: page.at(-1) as BlobDigest })
    ) {
      expect(page.length).toBeLessThanOrEqual(7);
      paged.push(...page);
    }
    expect(paged).toEqual(digests);
    // What a page ends with may be deleted before the next one is asked for.
    await store().delete(digests[6] as BlobDigest);
    expect(await store().list({ after: digests[6] as BlobDigest })).toEqual(digests.slice(7));
  });
}

function testDelete(store: () => BlobStore): void {
  it("deletes a blob once and for all, and it can come back", async () => {
    const digest = await store().put(stream("gone"));
    await store().delete(digest);
    await store().delete(digest);
    expect(await store().list()).toEqual([]);
    await expect(store().get(digest)).rejects.toMatchObject({ code: "blob_missing" });
    await store().put(stream("gone"));
    expect(await store().size(digest)).toBe(4);
  });
}
