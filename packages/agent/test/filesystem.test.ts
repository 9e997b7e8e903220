import { execFileSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Code } from "@connectrpc/connect";
import { type EntryInfo, FileType } from "@skerry/wire/filesystem";
import { beforeEach, describe, expect, it } from "vitest";
import { agentOfFile, failure } from "./agent-under-test.ts";
import { canMount, mountSmallDisk } from "./small-disk.ts";
import { uploadTo } from "./watching.ts";

const agent = await agentOfFile();
let folder: string;

beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "skerry-fs-")));
  return () => rm(folder, { recursive: true, force: true });
});

const asNobody = { headers: { Authorization: `Basic ${btoa("nobody:")}` } };

async function stat(path: string): Promise<EntryInfo> {
  const { entry } = await agent.filesystem.stat({ path });
  if (!entry) throw new Error("no entry");
  return entry;
}

describe("Stat", () => {
  it("describes a file", async () => {
    const path = join(folder, "file.txt");
    writeFileSync(path, "hello");
    chmodSync(path, 0o640);
    utimesSync(path, 1_700_000_000.5, 1_700_000_000.25);
    expect(await stat(path)).toMatchObject({
      name: "file.txt",
      path,
      type: FileType.FILE,
      size: 5n,
      mode: 0o640,
      permissions: "-rw-r-----",
      owner: "root",
      group: "root",
      modifiedTime: { seconds: 1_700_000_000n, nanos: 250_000_000 },
      isSymlink: false,
    });
    expect((await stat(path)).symlinkTarget).toBeUndefined();
  });

  it("describes a link by itself and its target", async () => {
    mkdirSync(join(folder, "dir"));
    symlinkSync("dir", join(folder, "link"));
    symlinkSync("nowhere", join(folder, "broken"));
    symlinkSync("loop", join(folder, "loop"));
    expect(await stat(join(folder, "link"))).toMatchObject({
      name: "link",
      type: FileType.DIRECTORY,
      size: 3n,
      mode: 0o755,
      permissions: "Lrwxrwxrwx",
      symlinkTarget: join(folder, "dir"),
      isSymlink: true,
    });
    for (const name of ["broken", "loop"]) {
      expect(await stat(join(folder, name))).toMatchObject({ type: FileType.UNSPECIFIED, mode: 0, symlinkTarget: join(folder, name) });
    }
  });

  it("knows unknown owners by number, devices by their mode, and the root by its name", async () => {
    const path = join(folder, "foreign");
    writeFileSync(path, "");
    execFileSync("chown", ["54321:54322", path]);
    expect(await stat(path)).toMatchObject({ owner: "54321", group: "54322" });
    symlinkSync("foreign", join(folder, "link"));
    expect(await stat(join(folder, "link"))).toMatchObject({ owner: "root", group: "root" });
    lchownSync(join(folder, "link"), 65534, 54323);
    expect(await stat(join(folder, "link"))).toMatchObject({ owner: "nobody", group: "54323" });
    expect(await stat("/dev/null")).toMatchObject({ type: FileType.UNSPECIFIED, permissions: "Dcrw-rw-rw-" });
    expect(await stat("/")).toMatchObject({ name: "/", path: "/", type: FileType.DIRECTORY });
  });

  it("shows the kind and the special bits of a file in its permissions only", async () => {
    const [fifo, socket, program] = ["fifo", "socket", "program"].map((name) => join(folder, name)) as [string, string, string];
    execFileSync("mkfifo", ["-m", "640", fifo]);
    await using server = createServer().listen(socket);
    await once(server, "listening");
    chmodSync(socket, 0o700);
    writeFileSync(program, "");
    chmodSync(program, 0o4755);
    expect(await stat(fifo)).toMatchObject({ type: FileType.UNSPECIFIED, mode: 0o640, permissions: "prw-r-----" });
    expect(await stat(socket)).toMatchObject({ type: FileType.UNSPECIFIED, mode: 0o700, permissions: "Srwx------" });
    expect(await stat(program)).toMatchObject({ type: FileType.FILE, mode: 0o755, permissions: "urwxr-xr-x" });
    const directory = await stat(folder);
    expect(directory).toMatchObject({ type: FileType.DIRECTORY, mode: 0o700, permissions: "drwx------" });
    expect(directory.size).toBeGreaterThan(0n);
  });

  it("echoes an absolute path untouched and resolves others at home", async () => {
    expect((await stat("/usr/../etc/passwd")).path).toBe("/usr/../etc/passwd");
    expect((await stat("~")).path).toBe("/root");
    expect((await stat("../etc/")).path).toBe("/etc");
    expect(await stat("/etc/")).toMatchObject({ path: "/etc/", name: "etc" });
    expect((await stat("")).path).toBe("/root");
  });

  it("distinguishes missing paths from broken ones", async () => {
    expect(await failure(stat(join(folder, "nope")))).toEqual({ code: Code.NotFound, message: `file not found: ${join(folder, "nope")}` });
    expect(await failure(stat("/etc/passwd/x"))).toMatchObject({
      code: Code.Internal,
      message: expect.stringContaining("error getting file info: "),
    });
    expect(await failure(stat("~other"))).toEqual({ code: Code.InvalidArgument, message: "cannot expand user-specific home dir" });
  });
});

describe("ListDir", () => {
  it("lists each directory right before its contents, in byte order, as deep as asked", async () => {
    for (const dir of ["b/inner/deep", "a"]) mkdirSync(join(folder, dir), { recursive: true });
    for (const file of ["b/x", "B", "a/1", "b/inner/deep/z", "ab"]) writeFileSync(join(folder, file), "");
    symlinkSync("b", join(folder, "link"));
    const names = async (depth: number) =>
      (await agent.filesystem.listDir({ path: folder, depth })).entries.map((entry) => entry.path.slice(folder.length + 1));
    expect(await names(0)).toEqual(["B", "a", "ab", "b", "link"]);
    expect(await names(1)).toEqual(await names(0));
    expect(await names(2)).toEqual(["B", "a", "a/1", "ab", "b", "b/inner", "b/x", "link"]);
    expect(await names(9)).toEqual(["B", "a", "a/1", "ab", "b", "b/inner", "b/inner/deep", "b/inner/deep/z", "b/x", "link"]);
  });

  it("shows names that are not UTF-8 with replacement characters, with their entries and their content", async () => {
    const odd = Buffer.concat([Buffer.from(`${folder}/odd-`), Buffer.of(0xff)]);
    mkdirSync(odd);
    writeFileSync(Buffer.concat([odd, Buffer.from("/inner")]), "12345");
    writeFileSync(join(folder, "\u{1f600}"), "");
    writeFileSync(join(folder, "\uff5e"), "");
    const { entries } = await agent.filesystem.listDir({ path: folder, depth: 2 });
    expect(entries.map(({ path, type, size }) => [path.slice(folder.length + 1), type, type === FileType.FILE ? size : 0n])).toEqual([
      ["odd-\ufffd", FileType.DIRECTORY, 0n],
      ["odd-\ufffd/inner", FileType.FILE, 5n],
      ["\uff5e", FileType.FILE, 0n],
      ["\u{1f600}", FileType.FILE, 0n],
    ]);
  });

  it("lists the home directory when it gets no path", async () => {
    const { entries } = await agent.filesystem.listDir({ path: "" });
    expect(new Set(entries.map(({ path }) => dirname(path)))).toEqual(new Set(["/root"]));
  });

  it("follows a link at the root and keeps the name of the link", async () => {
    mkdirSync(join(folder, "real"));
    writeFileSync(join(folder, "real/f"), "");
    symlinkSync("real", join(folder, "link"));
    const { entries } = await agent.filesystem.listDir({ path: join(folder, "link") });
    expect(entries.map((entry) => entry.path)).toEqual([join(folder, "link/f")]);
  });

  it("refuses a path that is not a directory", async () => {
    symlinkSync("loop", join(folder, "loop"));
    const list = (path: string) => failure(agent.filesystem.listDir({ path }));
    expect(await list(join(folder, "nope"))).toEqual({ code: Code.NotFound, message: `path not found: ${join(folder, "nope")}` });
    expect(await list("/etc/passwd")).toEqual({ code: Code.InvalidArgument, message: "path is not a directory: /etc/passwd" });
    expect(await list(join(folder, "loop"))).toMatchObject({ code: Code.FailedPrecondition, message: expect.stringContaining("cyclic") });
  });
});

describe("MakeDir", () => {
  it("makes all missing directories for the user, once", async () => {
    const path = join(folder, "x/y/z");
    const { entry } = await agent.filesystem.makeDir({ path }, asNobody);
    expect(entry).toMatchObject({ path, type: FileType.DIRECTORY, owner: "nobody", permissions: "drwxr-xr-x" });
    expect(statSync(join(folder, "x")).uid).toBe(65534);
    expect(await failure(agent.filesystem.makeDir({ path }))).toEqual({
      code: Code.AlreadyExists,
      message: `directory already exists: ${path}`,
    });
  });

  it("refuses a file in its place or above it", async () => {
    writeFileSync(join(folder, "file"), "");
    expect(await failure(agent.filesystem.makeDir({ path: join(folder, "file") }))).toMatchObject({
      code: Code.InvalidArgument,
      message: expect.stringContaining("path already exists but it is not a directory: "),
    });
    expect(await failure(agent.filesystem.makeDir({ path: join(folder, "file/x") }))).toMatchObject({
      code: Code.Internal,
      message: expect.stringMatching(/error getting file info: .*not a directory/),
    });
  });
});

describe("paths that no file system accepts", () => {
  const long = () => join(folder, "x".repeat(300));
  const loop = () => {
    symlinkSync("loop", join(folder, "loop"));
    return join(folder, "loop/file");
  };
  it.each([
    ["a name that is too long", long],
    ["a loop of links", loop],
  ])("are the caller's mistake: %s", async (_, pathOf) => {
    const path = pathOf();
    writeFileSync(join(folder, "file"), "");
    const calls = [
      () => agent.filesystem.stat({ path }),
      () => agent.filesystem.makeDir({ path }),
      () => agent.filesystem.move({ source: path, destination: join(folder, "new") }),
      () => agent.filesystem.move({ source: join(folder, "file"), destination: path }),
    ];
    for (const call of calls) expect((await failure(call())).code).toBe(Code.InvalidArgument);
    expect(readdirSync(folder)).toContain("file");
  });
});

describe("Move", () => {
  it("renames, makes the folders above the destination, and replaces files", async () => {
    await uploadTo(agent, join(folder, "a"), "content", { "X-Metadata-Colour": "red" });
    chmodSync(join(folder, "a"), 0o600);
    const destination = join(folder, "new/b");
    const { entry } = await agent.filesystem.move({ source: join(folder, "a"), destination }, asNobody);
    expect(entry).toMatchObject({ path: destination, size: 7n, owner: "root", mode: 0o600, metadata: { colour: "red" } });
    expect(statSync(join(folder, "new")).uid).toBe(65534);
    writeFileSync(join(folder, "c"), "");
    await agent.filesystem.move({ source: destination, destination: join(folder, "c") });
    expect(statSync(join(folder, "c")).size).toBe(7);
    for (const name of ["from", "to"]) mkdirSync(join(folder, name));
    writeFileSync(join(folder, "from/file"), "");
    await agent.filesystem.move({ source: join(folder, "from"), destination: join(folder, "to") });
    expect(readdirSync(join(folder, "to"))).toEqual(["file"]);
  });

  it.skipIf(!canMount())("to another file system is refused, and says what helps", async () => {
    using _disk = mountSmallDisk(join(folder, "disk"));
    writeFileSync(join(folder, "file"), "");
    expect(await failure(agent.filesystem.move({ source: join(folder, "file"), destination: join(folder, "disk/file") }))).toEqual({
      code: Code.Internal,
      message: expect.stringMatching(/^error renaming: .*copy it and remove the source$/),
    });
    expect(readdirSync(folder)).toContain("file");
  });

  it("reports a missing source", async () => {
    const nope = join(folder, "nope");
    expect(await failure(agent.filesystem.move({ source: nope, destination: join(folder, "x") }))).toEqual({
      code: Code.NotFound,
      message: `source file not found: ${nope}`,
    });
  });

  it.each([
    ["a directory onto one that is not empty", "dir", "full"],
    ["a directory onto a file", "dir", "file"],
    ["a file onto a directory", "file", "dir"],
    ["a directory into itself", "dir", "dir/new/inside"],
  ])("refuses %s; folders that it made above stay", async (_, source, destination) => {
    for (const name of ["full/x", "dir"]) mkdirSync(join(folder, name), { recursive: true });
    writeFileSync(join(folder, "file"), "");
    const target = join(folder, destination);
    expect(await failure(agent.filesystem.move({ source: join(folder, source), destination: target }))).toEqual({
      code: Code.Internal,
      message: expect.stringMatching(/^error renaming: /),
    });
    expect(existsSync(dirname(target))).toBe(true);
  });

  it.runIf(canMount())("refuses another file system, on which it leaves the folders", async () => {
    using _disk = mountSmallDisk(join(folder, "disk"));
    writeFileSync(join(folder, "file"), "");
    const destination = join(folder, "disk/new/file");
    expect(await failure(agent.filesystem.move({ source: join(folder, "file"), destination }))).toEqual({
      code: Code.Internal,
      message: expect.stringMatching(/^error renaming: /),
    });
    expect([existsSync(join(folder, "file")), readdirSync(join(folder, "disk/new"))]).toEqual([true, []]);
  });
});

describe("Remove", () => {
  it("removes trees and links, and succeeds for a missing path", async () => {
    mkdirSync(join(folder, "tree/inner"), { recursive: true });
    writeFileSync(join(folder, "kept"), "");
    symlinkSync("kept", join(folder, "link"));
    for (const name of ["tree", "link", "link"]) await agent.filesystem.remove({ path: join(folder, name) });
    expect(() => lstatSync(join(folder, "tree"))).toThrow();
    expect(lstatSync(join(folder, "kept")).isFile()).toBe(true);
  });

  it("reports what the kernel refuses to remove", async () => {
    expect(await failure(agent.filesystem.remove({ path: "/proc/version" }))).toEqual({
      code: Code.Internal,
      message: expect.stringMatching(/^error removing file or directory: /),
    });
  });
});

it("a path with a NUL character is the caller's mistake, in every field", async () => {
  const { filesystem } = agent;
  const path = `${folder}/a\0b`;
  const calls = [
    () => filesystem.stat({ path }),
    () => filesystem.listDir({ path }),
    () => filesystem.makeDir({ path }),
    () => filesystem.remove({ path }),
    () => filesystem.move({ source: path, destination: folder }),
    () => filesystem.move({ source: folder, destination: path }),
    () => filesystem.createWatcher({ path }),
  ];
  for (const call of calls)
    expect(await failure(call())).toMatchObject({ code: Code.InvalidArgument, message: expect.stringContaining("NUL") });
});
