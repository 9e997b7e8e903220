// Archives that attack: nothing but the destination changes, the agent says what is wrong, and it lives on with bounded memory.

import { lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { scaled } from "@skerry/testkit/depth";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { agentOfFile, descriptorsOf } from "./agent-under-test.ts";
import { copyTo, octal, paxEntry, type TarEntry, tarEntry, tarOf, treeOf } from "./copying.ts";
import { canMount, mountSmallDisk } from "./small-disk.ts";

const RUNS = scaled("random archives for a COPY step", { sample: 150, full: 2_000 });
const MIB = 1024 * 1024;

const agent = await agentOfFile();
let root: string;
let outside: string;
let target: string;

beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), "skerry-copy-")));
  [outside, target] = [join(root, "outside"), join(root, "target")];
  makeFolders();
  return () => rm(root, { recursive: true, force: true });
});

const OUTSIDE = { secret: "secret", sub: "dir", "sub/x": "x" };

function makeFolders(): void {
  mkdirSync(join(outside, "sub"), { recursive: true });
  writeFileSync(join(outside, "secret"), "secret");
  writeFileSync(join(outside, "sub/x"), "x");
  mkdirSync(target);
}

/** Nothing outside changed, and the agent lives with nothing left open. */
afterEach(async () => {
  expect(treeOf(outside)).toEqual(OUTSIDE);
  expect(readdirSync(root).sort()).toEqual(["outside", "target"]);
  expect((await agent.fetch("/health")).status).toBe(204);
  await expect.poll(() => descriptorsOf(agent.pid).filter((path) => path.startsWith(root))).toEqual([]);
});

async function refusal(entries: readonly TarEntry[], parameters: { source?: string; destination?: string } = {}): Promise<unknown> {
  const { status, body } = await copyTo(agent, tarOf(entries), { destination: target, ...parameters });
  return status === 400 ? body.message?.replace(/^failed to extract files: the archive /, "") : { status, body };
}

describe("an archive cannot leave the destination", () => {
  const link = (name: string, to = "outside"): TarEntry => ({ name, type: "2", link: join(root, to) });

  it.each<[string, () => TarEntry[], string]>([
    ["by ..", () => [{ name: "../outside/new", content: "x" }], 'has a path with ".."'],
    ["by .. further down", () => [{ name: "a/../../outside/new" }], 'has a path with ".."'],
    ["by .. in an extended header", () => [paxEntry({ path: "../outside/new" }), { name: "a" }], 'has a path with ".."'],
    ["by .. in the target of a hard link", () => [{ name: "a", type: "1", link: "../outside/secret" }], 'has a path with ".."'],
    ["by its own link", () => [link("l"), { name: "l/new", content: "x" }], "has an entry below its own link: TARGET/l"],
    ["by its own link as a directory", () => [link("l"), { name: "l/", type: "5" }], "has an entry below its own link: TARGET/l"],
    [
      "by a relative link",
      () => [{ name: "l", type: "2", link: "../outside" }, { name: "l/new" }],
      "has an entry below its own link: TARGET/l",
    ],
    [
      "by a link further down",
      () => [{ name: "d/", type: "5" }, link("d/l"), { name: "d/l/sub/x" }],
      "has an entry below its own link: TARGET/d/l",
    ],
    [
      "by a hard link to its own link",
      () => [link("l"), { name: "h", type: "1", link: "l" }, { name: "h/new" }],
      "has an entry below its own link: TARGET/h",
    ],
    [
      "by a link with two names, of which one is replaced",
      () => [link("l"), { name: "h", type: "1", link: "l" }, { name: "h" }, { name: "l/new" }],
      "has an entry below its own link: TARGET/l",
    ],
    [
      "by a hard link through its own link",
      () => [link("l"), { name: "h", type: "1", link: "l/secret" }],
      "has an entry below its own link: TARGET/l",
    ],
    [
      "by a hard link to a directory",
      () => [
        { name: "d/", type: "5" },
        { name: "h", type: "1", link: "d" },
      ],
      "has a hard link to a file that is not in it: h",
    ],
  ])("%s", async (_title, entries, message) => {
    expect(await refusal(entries())).toBe(message.replace("TARGET", target));
  });

  it("by a link in the place of a link that was there and was followed", async () => {
    mkdirSync(join(target, "usr"));
    symlinkSync("usr", join(target, "lib"));
    expect(await refusal([{ name: "lib/a" }, link("lib"), { name: "lib/new" }])).toBe(`has an entry below its own link: ${target}/lib`);
    expect(treeOf(target)).toEqual({ usr: "dir", "usr/a": "", lib: `-> ${outside}` });
  });

  it("by a link that another way leads to", async () => {
    mkdirSync(join(target, "usr"));
    symlinkSync("usr", join(target, "lib"));
    expect(await refusal([link("lib/l"), { name: "usr/l/new" }])).toBe(`has an entry below its own link: ${target}/usr/l`);
  });

  it("by a source that comes twice, first as a link", async () => {
    const entries = [link("a"), { name: "a", content: "x" }];
    expect(await refusal(entries, { source: "a", destination: join(target, "new") })).toMatchObject({ status: 200 });
    expect(treeOf(target)).toEqual({ new: "x" });
  });

  it("by a source that is a link, and then has something below it", async () => {
    const entries = [link("a"), { name: "a/new", content: "x" }];
    expect(await refusal(entries, { source: "a", destination: join(target, "new") })).toBe("has an entry below a file: a/new");
  });

  it("by an absolute path, whose slash means nothing", async () => {
    expect(await refusal([{ name: join(outside, "new"), content: "x" }])).toMatchObject({ status: 200 });
    expect(readFileSync(join(target, outside, "new"), "utf8")).toBe("x");
  });

  it("by writing through a link that is there", async () => {
    symlinkSync(join(outside, "secret"), join(target, "l"));
    expect(await refusal([{ name: "l", content: "x" }])).toMatchObject({ status: 200 });
    expect(treeOf(target)).toEqual({ l: "x" });
  });
});

describe("refuses", () => {
  const entry = (edit: (header: Buffer) => void, more: Partial<TarEntry> = {}): TarEntry => ({ name: "a", ...more, edit });
  const old = { name: "a", type: "S", content: "x" } as const;

  it.each<[string, readonly TarEntry[], string]>([
    ["a character device", [{ name: "dev/null", type: "3" }], "has a device node, which cannot be copied: dev/null"],
    ["a block device", [{ name: "sda", type: "4" }], "has a device node, which cannot be copied: sda"],
    ["a FIFO", [{ name: "pipe", type: "6" }], "has a FIFO, which cannot be copied: pipe"],
    ["an unknown kind", [{ name: "a", type: "Q" }], 'has an entry of a kind that is not supported ("Q")'],
    [
      "a name with control characters, which its message lacks",
      [{ name: "a\u001b[31m\n", type: "6" }],
      "has a FIFO, which cannot be copied: a?[31m?",
    ],
    ["a NUL in a name", [paxEntry({ path: "a\0b" }), { name: "a" }], "has a name with a NUL character"],
    ["a long name without end", [{ name: "x", type: "L", size: 2 ** 33 - 1 }], "has a name or an extended header that is too long"],
    ["an extended header without end", [{ name: "x", type: "x", size: 2 ** 32 }], "has a name or an extended header that is too long"],
    ["a damaged extended header", [{ name: "x", type: "x", content: "999 path=x\n" }], "is damaged: an extended header"],
    ["an extended header without an end", [{ name: "x", type: "x", content: "8 path=xx" }], "is damaged: an extended header"],
    ["a negative size", [paxEntry({ size: "-1" }), { name: "a" }], "is damaged: an impossible size"],
    ["a size that is no number", [paxEntry({ size: "1e3" }), { name: "a" }], "is damaged: the number size"],
    ["a size beyond all files", [entry((header) => header.fill(0xff, 125, 136).fill(0x80, 124, 125))], "is damaged: an impossible size"],
    ["letters in a number", [entry((header) => header.write("zzz", 124))], "is damaged: a number in a header"],
    [
      "a sparse file of an unknown format",
      [paxEntry({ "GNU.sparse.realsize": "9" }), { name: "a" }],
      "has a sparse file in a format that is not supported",
    ],
    [
      "a sparse map with parts that overlap",
      [paxEntry({ "GNU.sparse.size": "9", "GNU.sparse.map": "0,5,3,2" }), { name: "a", content: "1234567" }],
      "is damaged: the map of a sparse file",
    ],
    [
      "a sparse map beyond the file",
      [paxEntry({ "GNU.sparse.size": "9", "GNU.sparse.map": "8,2" }), { name: "a", content: "12" }],
      "is damaged: the map of a sparse file",
    ],
    [
      "a sparse map that does not fit the content",
      [paxEntry({ "GNU.sparse.size": "9", "GNU.sparse.map": "0,2" }), { name: "a", content: "1" }],
      "is damaged: the size of a sparse file",
    ],
    [
      "a sparse map with a line without end",
      [paxEntry({ "GNU.sparse.major": "1", "GNU.sparse.realsize": "9" }), { name: "a", content: "1".repeat(2048) }],
      "is damaged: the map of a sparse file",
    ],
    [
      "a sparse map with too many parts",
      [paxEntry({ "GNU.sparse.major": "1", "GNU.sparse.realsize": "9" }), { name: "a", content: "9999999\n".repeat(64) }],
      "has a sparse file with too many holes",
    ],
    [
      "an old sparse map with a wrong size",
      [{ ...old, edit: (header) => header.write(`${octal(0, 11)}\0${octal(9, 11)}\0`, 386) && header.write(octal(9, 11), 483) }],
      "is damaged: the size of a sparse file",
    ],
  ])("%s", async (_title, entries, message) => {
    expect(await refusal(entries)).toBe(message);
  });

  it.each([
    ["text", Buffer.from("this is no archive, but long enough for a header".repeat(20))],
    ["a header with a wrong checksum", Buffer.concat([Buffer.alloc(100, "x"), tarEntry({ name: "a" }).subarray(100)])],
    ["a signed checksum that is wrong", tarEntry({ name: "\u00ff" }).fill("7", 148, 153)],
  ])("%s", async (_title, bytes) => {
    const { status, body } = await copyTo(agent, new Uint8Array(bytes), { destination: target });
    expect({ status, message: body.message }).toEqual({
      status: 400,
      message: "failed to extract files: the archive is damaged: not a tar archive, or a damaged header",
    });
  });

  const whole = tarOf([{ name: "a", content: "a".repeat(5000) }]);

  it.each([
    ["nothing", Buffer.alloc(0)],
    ["a part of a header", whole.subarray(0, 300)],
    ["a part of a file", whole.subarray(0, 3000)],
    ["an archive without its end", whole.subarray(0, -1024)],
    ["a part of a compressed archive", gzipSync(whole).subarray(0, -20)],
    ["the magic of gzip", Buffer.from([0x1f, 0x8b])],
    ["one byte", Buffer.from([0x1f])],
  ])("%s, which ends too early", async (_title, bytes) => {
    const { status, body } = await copyTo(agent, new Uint8Array(bytes), { destination: target });
    expect({ status, message: body.message }).toEqual({ status: 400, message: "failed to extract files: the archive ends too early" });
  });

  it("damaged compressed data", async () => {
    const bytes = gzipSync(whole).fill(0xff, 15, 25);
    const { status, body } = await copyTo(agent, new Uint8Array(bytes), { destination: target });
    expect({ status, message: body.message }).toEqual({
      status: 400,
      message: "failed to extract files: the archive is damaged: it cannot be decompressed",
    });
  });
});

it("ends with a clear error on a full disk, and an archive of many times its size", async () => {
  if (!canMount()) return;
  const bomb = gzipSync(Buffer.concat([tarEntry({ name: "zeros", content: Buffer.alloc(64 * MIB) }), Buffer.alloc(1024)]));
  using _disk = mountSmallDisk(join(target, "disk"), "size=1m");
  const { status, body } = await copyTo(agent, new Uint8Array(bomb), { destination: join(target, "disk") });
  expect({ status, message: body.message }).toEqual({ status: 507, message: "failed to extract files: not enough disk space available" });
});

it("reads no more than it places: a sender is held back, and one that goes away leaves nothing open", async () => {
  const leaving = new AbortController();
  let sent = 0;
  const content = new ReadableStream({
    pull(controller) {
      if (sent === 0) controller.enqueue(tarEntry({ name: "endless", size: 2 ** 32 }));
      // The rest of the file never comes.
      sent += 1;
      if (sent > 20) return new Promise(() => {});
      controller.enqueue(new Uint8Array(MIB));
      return undefined;
    },
  });
  const query = new URLSearchParams({ source: ".", destination: target, user: "root" });
  const request = agent.fetch(`/copy?${query}`, { method: "POST", body: content, duplex: "half", signal: leaving.signal } as RequestInit);
  request.catch(() => {});
  await expect.poll(() => readdirSync(target)).toEqual(["endless"]);
  expect(descriptorsOf(agent.pid)).toContain(join(target, "endless"));
  leaving.abort();
  await expect(request).rejects.toThrow();
});

describe("any archive", () => {
  const part = fc.constantFrom("a", "b", "l", "sub", "..", ".", "");
  const path = fc.oneof(
    fc.array(part, { maxLength: 4 }).map((parts) => parts.join("/")),
    fc.constantFrom("/", "../outside/secret", "l/secret", "l/sub/x"),
  );
  const entry = fc.record({
    name: path,
    type: fc.constantFrom("0", "1", "2", "5", "6", "\0", "S", "x", "L", "K"),
    link: fc.oneof(path, fc.constantFrom("outside", "../outside", "..", ".", "OUTSIDE")),
    content: fc.constantFrom("", "x", "19 path=../outside\n", "../outside/new", "12 path=l/x\n"),
    mode: fc.nat(0o7777),
  });
  const damage = fc.array(fc.tuple(fc.nat(10_000), fc.nat(255)), { maxLength: 3 });

  it("changes nothing but the destination, and gets an answer", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(entry, { maxLength: 12 }), damage, fc.boolean(), path, async (entries, bytes, isCompressed, source) => {
        await rm(target, { recursive: true });
        mkdirSync(join(target, "sub"), { recursive: true });
        symlinkSync("sub", join(target, "b"));
        const archive = tarOf(entries.map((one) => ({ ...one, link: one.link.replace("OUTSIDE", outside) })));
        for (const [at, value] of bytes) if (archive.length > 1024 * 3) archive[at % archive.length] = value;
        const { status, body } = await copyTo(agent, isCompressed ? gzipSync(archive) : new Uint8Array(archive), {
          source,
          destination: target,
        });
        expect(status === 200 ? typeof body.entries : typeof body.message).toBe(status === 200 ? "number" : "string");
        expect(treeOf(outside)).toEqual(OUTSIDE);
        expect(readdirSync(root).sort()).toEqual(["outside", "target"]);
        expect(lstatSync(join(outside, "secret"))).toMatchObject({ uid: 0, mode: 0o100644 });
      }),
      { numRuns: RUNS },
    );
  });
});
