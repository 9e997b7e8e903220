// Trees packed into a blob and unpacked elsewhere: what comes out is the layer that went in, and a hostile archive gets nothing out of its target.

import { execFileSync } from "node:child_process";
import {
  chmodSync,
  closeSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findXattr, setXattr } from "@skerry/base/linux";
import { type BlobStore, openFolderBlobStore, parseBlobDigest } from "@skerry/blobs";
import { exportLayer, importLayer, type LayerStore, openLayerStore, packTree, unpackTree } from "@skerry/layers";
import { scaled } from "@skerry/testkit/depth";
import { Header } from "tar";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const base = mkdtempSync(join(tmpdir(), "skerry-archive-"));
const MIB = 2 ** 20;
let here: LayerStore;
let there: LayerStore;
let blobs: BlobStore;
beforeAll(async () => {
  [here, there] = [await openLayerStore(join(base, "here")), await openLayerStore(join(base, "there"))];
  blobs = await openFolderBlobStore(join(base, "blobs"));
});
afterAll(() => rmSync(base, { recursive: true, force: true }));

let count = 0;
const emptyDir = () => {
  count += 1;
  const path = join(base, `dir-${count}`);
  mkdirSync(path);
  return path;
};

async function collect(bytes: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of bytes) pieces.push(piece);
  return Buffer.concat(pieces);
}

/** In odd pieces, as a network has them. */
async function* inPieces(bytes: Buffer, size = 1000): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function move(fill: (path: string) => void) {
  const staged = await here.stagingDir();
  fill(staged);
  const layer = await here.adopt(staged);
  const blob = await exportLayer(layer, { layers: here, blobs });
  await importLayer({ layer, blob, holder: "test" }, { layers: there, blobs });
  expect(await there.has(layer)).toBe(true);
  return { from: await here.path(layer), to: await there.path(layer), layer, blob };
}

const ACCESS_LIST = Buffer.from("0200000001000600ffffffff02000400e803000004000400ffffffff10000600ffffffff20000400ffffffff", "hex");
const CAPABILITY = Buffer.from("0100000200200000000000000000000000000000", "hex");

function everything(path: string): void {
  const at = (name: string) => join(path, name);
  mkdirSync(at("folder"), { mode: 0o2750 });
  writeFileSync(at("folder/file"), "content");
  linkSync(at("folder/file"), at("a-second-name"));
  linkSync(at("folder/file"), at("z-third-name"));
  writeFileSync(at("program"), "x".repeat(1537));
  execFileSync("chown", ["1000:4000000000", at("program")]);
  chmodSync(at("program"), 0o6755);
  writeFileSync(at("capable"), "");
  setXattr(Buffer.from(at("capable")), "security.capability", CAPABILITY);
  writeFileSync(at("listed"), "");
  setXattr(Buffer.from(at("listed")), "system.posix_acl_access", ACCESS_LIST);
  setXattr(Buffer.from(at("listed")), "user.bytes", Buffer.from([0, 10, 61, 255]));
  setXattr(Buffer.from(at("folder")), "trusted.overlay.opaque", Buffer.from("y"));
  symlinkSync("../../../../etc/passwd", at("link"));
  symlinkSync(Buffer.from([0x2f, 0xe4, 0x20]), at("odd link"));
  symlinkSync("t".repeat(3000), at("long link"));
  writeFileSync(Buffer.concat([Buffer.from(`${path}/`), Buffer.from([0xe4, 0xff, 0x0a, 0x5c])]), "odd name");
  writeFileSync(at("ünïcode \u{1f600}"), "text");
  writeFileSync(at("n".repeat(255)), "long name");
  const deep = at(Array.from({ length: 12 }, (_, level) => `${level}${"d".repeat(200)}`).join("/"));
  mkdirSync(deep, { recursive: true });
  writeFileSync(join(deep, "file"), "deep");
  execFileSync("mknod", [at("whiteout"), "c", "0", "0"]);
  execFileSync("mknod", [at("device"), "b", "259", "300"]);
  execFileSync("mkfifo", [at("pipe")]);
  utimesSync(at("capable"), -1.5, -1.5);
  utimesSync(at("listed"), 4_294_967_297.25, 4_294_967_297.25);
}

describe("a layer that moves", () => {
  it("keeps everything that there is of a tree", async () => {
    const { to } = await move(everything);
    const ino = (name: string) => statSync(join(to, name)).ino;
    expect([ino("a-second-name"), ino("z-third-name")]).toEqual([ino("folder/file"), ino("folder/file")]);
    expect(statSync(join(to, "program"))).toMatchObject({ uid: 1000, gid: 4_000_000_000, mode: 0o106755 });
    expect(findXattr(Buffer.from(join(to, "capable")), "security.capability")).toEqual(CAPABILITY);
    expect(findXattr(Buffer.from(join(to, "listed")), "system.posix_acl_access")).toEqual(ACCESS_LIST);
    expect(lstatSync(join(to, "whiteout"))).toMatchObject({ rdev: 0 });
    expect(statSync(join(to, "listed")).mtimeMs).toBe(4_294_967_297_250);
  });

  it("gives the same bytes on every machine", async () => {
    const { from, to, layer, blob } = await move(everything);
    expect((await collect(packTree(from))).equals(await collect(packTree(to)))).toBe(true);
    expect(await exportLayer(layer, { layers: there, blobs })).toBe(blob);
  });

  it("can be read by GNU tar", async () => {
    const { from } = await move(everything);
    const target = emptyDir();
    const args = ["--extract", "--xattrs", "--xattrs-include=*", "--numeric-owner", "--same-permissions", "--directory", target];
    execFileSync("tar", args, { input: await collect(packTree(from)), stdio: ["pipe", "pipe", "pipe"] });
    expect(readdirSync(target, { encoding: "latin1", recursive: true }).sort()).toEqual(
      readdirSync(from, { encoding: "latin1", recursive: true }).sort(),
    );
    expect(findXattr(Buffer.from(join(target, "listed")), "user.bytes")).toEqual(Buffer.from([0, 10, 61, 255]));
    expect(readFileSync(join(target, "program"), "utf8")).toBe("x".repeat(1537));
  });

  it("takes no room for holes, as memory and disks have them", async () => {
    const size = 1024 * MIB;
    const { from, to, blob } = await move((path) => {
      const fd = openSync(join(path, "memory"), "w");
      for (const offset of [0, 5 * MIB, 512 * MIB, size - 4096]) writeSync(fd, Buffer.alloc(4096, "m"), 0, 4096, offset);
      closeSync(fd);
      writeFileSync(join(path, "nothing"), "");
      truncateSync(join(path, "nothing"), 100 * MIB);
    });
    expect(await blobs.size(blob)).toBeLessThan(MIB);
    for (const name of ["memory", "nothing"]) {
      expect(statSync(join(to, name)).size).toBe(statSync(join(from, name)).size);
      expect(statSync(join(to, name)).blocks).toBeLessThan(MIB / 512);
    }
    execFileSync("cmp", [join(from, "memory"), join(to, "memory")]);
  });

  it("streams trees of any number of files", { timeout: 900_000 }, async () => {
    const entries = scaled("files of a layer that moves", { sample: 3_000, full: 100_000 });
    const { to } = await move((path) => {
      for (let folder = 0; folder < entries / 1000; folder += 1) {
        mkdirSync(join(path, String(folder)));
        for (let file = 0; file < 1000; file += 1) writeFileSync(join(path, String(folder), String(file)), `${folder}/${file}`);
      }
    });
    expect(readdirSync(to, { recursive: true })).toHaveLength(entries + entries / 1000);
    expect(readFileSync(join(to, "1/997"), "utf8")).toBe("1/997");
  });

  it("is refused when the blob is another layer, and leaves nothing", async () => {
    const one = await move((path) => writeFileSync(join(path, "one"), ""));
    const two = await move((path) => writeFileSync(join(path, "two"), ""));
    const elsewhere = await openLayerStore(emptyDir());
    const wrong = importLayer({ layer: one.layer, blob: two.blob, holder: "test" }, { layers: elsewhere, blobs });
    await expect(wrong).rejects.toMatchObject({ code: "layer_damaged" });
    const missing = { layer: one.layer, blob: parseBlobDigest(`sha256:${"0".repeat(64)}`), holder: "test" };
    await expect(importLayer(missing, { layers: elsewhere, blobs })).rejects.toMatchObject({ code: "blob_missing" });
    expect(elsewhere.list()).toEqual([]);
    expect(elsewhere.held()).toEqual(new Set());
    expect(["here", "there"].map((name) => readdirSync(join(base, name, "staging")))).toEqual([[], []]);
  });

  it("cannot hold a socket, and says so", async () => {
    const dir = emptyDir();
    const server = createServer().listen(join(dir, "socket"));
    await new Promise((resolve) => server.once("listening", resolve));
    await expect(collect(packTree(dir))).rejects.toMatchObject({ code: "tree_not_packable", message: expect.stringContaining("./socket") });
    server.close();
  });
});

describe("a hostile archive", () => {
  interface Fake {
    readonly path: string;
    readonly type?: "File" | "Directory" | "SymbolicLink" | "Link" | "GlobalExtendedHeader" | "ContiguousFile";
    readonly linkpath?: string;
    readonly content?: string;
    readonly size?: number;
  }
  const ROOT: Fake = { path: ".", type: "Directory" };

  function archive(...entries: Fake[]): Buffer {
    const blocks = entries.map(({ path, type = "File", linkpath = "", content = "", size = content.length }) => {
      const block = Buffer.alloc(512);
      new Header({ path, type, linkpath, size, mode: 0o755, uid: 0, gid: 0, mtime: new Date(0) }).encode(block);
      return Buffer.concat([block, Buffer.from(content), Buffer.alloc((512 - (content.length % 512)) % 512)]);
    });
    return Buffer.concat([...blocks, Buffer.alloc(1024)]);
  }

  const link = (target: string): Fake => ({ path: "./a", type: "SymbolicLink", linkpath: target });
  it.each<[string, Fake[]]>([
    ["without a root", [{ path: "./a" }]],
    ["of nothing", []],
    ["with a file as its root", [{ path: "." }]],
    ["with two roots", [ROOT, ROOT]],
    ["with an absolute path", [ROOT, { path: "/tmp/skerry-hostile" }]],
    ["with a path that goes up", [ROOT, { path: "./../hostile" }]],
    ["with a folder that goes up", [ROOT, { path: "./..", type: "Directory" }]],
    ["with a path without the root", [ROOT, { path: "a" }]],
    ["with an empty name", [ROOT, { path: "./" + "/a" }]],
    ["that writes through a link", [ROOT, link("/tmp"), { path: "./a/hostile", content: "x" }]],
    ["that replaces a link by a folder", [ROOT, link("/tmp"), { path: "./a", type: "Directory" }]],
    ["that writes to where a link points", [ROOT, link("/tmp/skerry-hostile"), { path: "./a", content: "x" }]],
    ["that links to the host", [ROOT, { path: "./a", type: "Link", linkpath: "/etc/passwd" }]],
    ["that links to what is above", [ROOT, { path: "./a", type: "Link", linkpath: "./../dir" }]],
    ["that links to what comes later", [ROOT, { path: "./a", type: "Link", linkpath: "./b" }, { path: "./b" }]],
    ["with names out of order", [ROOT, { path: "./b" }, { path: "./a" }]],
    ["with one name twice", [ROOT, { path: "./a" }, { path: "./a" }]],
    ["that goes back to a folder", [ROOT, { path: "./a", type: "Directory" }, { path: "./b" }, { path: "./a/c" }]],
    ["with entries of other kinds", [ROOT, { path: "./a", type: "ContiguousFile" }]],
    ["with settings for all entries", [ROOT, { path: "./a", type: "GlobalExtendedHeader" }]],
    ["with a folder that has content", [ROOT, { path: "./a", type: "Directory", content: "x".repeat(512) }]],
    ["that ends in a file", [ROOT, { path: "./a", size: 1e9 }]],
  ])("%s is refused", async (_what, entries) => {
    const parent = emptyDir();
    mkdirSync(join(parent, "target"));
    await expect(unpackTree(inPieces(archive(...entries)), join(parent, "target"))).rejects.toMatchObject({ code: "archive_invalid" });
    expect(readdirSync(parent)).toEqual(["target"]);
    expect(existsSync("/tmp/skerry-hostile") || existsSync("/tmp/hostile")).toBe(false);
  });

  it("may have nothing behind its end, and no damaged header", async () => {
    const whole = archive(ROOT, { path: "./a", content: "x" });
    await unpackTree(inPieces(whole, 7), emptyDir());
    const flipped = Buffer.from(whole);
    flipped[520] = (flipped[520] ?? 0) ^ 1;
    for (const bytes of [Buffer.concat([whole, Buffer.alloc(512)]), flipped, whole.subarray(0, -1), whole.subarray(0, 600)]) {
      await expect(unpackTree(inPieces(bytes), emptyDir())).rejects.toMatchObject({ code: "archive_invalid" });
    }
  });

  it("of random changes is refused, or unpacked inside its target", async () => {
    const staged = emptyDir();
    everything(staged);
    const bytes = await collect(packTree(staged));
    for (let round = 0; round < scaled("damaged archives", { sample: 20, full: 500 }); round += 1) {
      const damaged = Buffer.from(bytes);
      for (let change = 0; change < 3; change += 1) damaged[Math.floor(Math.random() * damaged.length)] = Math.floor(Math.random() * 256);
      const parent = emptyDir();
      mkdirSync(join(parent, "target"));
      try {
        await unpackTree(inPieces(damaged, 4096), join(parent, "target"));
      } catch (error) {
        expect(error).toMatchObject({ code: expect.stringMatching(/^(archive_invalid|syscall_failed|E[A-Z]+)$/) });
      }
      expect(readdirSync(parent)).toEqual(["target"]);
      rmSync(parent, { recursive: true });
    }
  });
});
