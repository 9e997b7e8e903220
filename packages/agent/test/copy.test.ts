import { execFileSync } from "node:child_process";
import {
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { beforeEach, describe, expect, it } from "vitest";
import { agentOfFile } from "./agent-under-test.ts";
import { copyTo, modeOf, paxEntry, tarEntry, tarOf, treeOf } from "./copying.ts";

const agent = await agentOfFile();
let root: string;
let context: string;
let target: string;

beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), "skerry-copy-")));
  [context, target] = [join(root, "context"), join(root, "target")];
  mkdirSync(context);
  mkdirSync(target);
  return () => rm(root, { recursive: true, force: true });
});

/** Writes files into the context. A value "-> x" is a symbolic link, and a name that ends with a slash is a directory. */
function write(files: Readonly<Record<string, string>>, folder = context): void {
  for (const [name, content] of Object.entries(files)) {
    const path = join(folder, name);
    mkdirSync(name.endsWith("/") ? path : dirname(path), { recursive: true });
    if (name.endsWith("/")) continue;
    if (content.startsWith("-> ")) symlinkSync(content.slice(3), path);
    else writeFileSync(path, content);
  }
}

/** As the SDKs pack: each file by its name, directories without what is in them. */
function pack(names: readonly string[], ...options: string[]): Buffer {
  const args = ["-C", context, "--no-recursion", "-c", ...options, "--", ...names];
  return execFileSync("tar", args, { maxBuffer: 256 * 1024 * 1024, stdio: ["ignore", "pipe", "ignore"] });
}

const done = (entries: number) => ({ status: 200, body: { entries, warnings: [] } });

describe("a file", () => {
  it.each([
    ["a new path, with directories above it", "new/deep/b.txt", "new/deep/b.txt"],
    ["a path that ends with a slash", "new/", "new/a.txt"],
    ["a directory", "there", "there/a.txt"],
    ["a link to a directory", "link", "there/a.txt"],
    ["the current directory", ".", "a.txt"],
    ["a file, which it replaces", "there/old", "there/old"],
  ])("goes to %s", async (_title, destination, expected) => {
    write({ "a.txt": "new" });
    write({ "there/old": "old", link: "-> there" }, target);
    expect(await copyTo(agent, pack(["a.txt"]), { source: "a.txt", destination, workdir: target })).toEqual(done(1));
    expect(readFileSync(join(target, expected), "utf8")).toBe("new");
  });

  it("does not change what a replaced link led to", async () => {
    write({ "a.txt": "new" });
    write({ old: "old", link: "-> old" }, target);
    expect(await copyTo(agent, pack(["a.txt"]), { source: "a.txt", destination: join(target, "link") })).toEqual(done(1));
    expect(treeOf(target)).toEqual({ old: "old", link: "new" });
  });

  it("keeps its mode and its time", async () => {
    write({ "a.sh": "" });
    execFileSync("chmod", ["4751", join(context, "a.sh")]);
    utimesSync(join(context, "a.sh"), 1_000_000_000, 1_000_000_000);
    await copyTo(agent, pack(["a.sh"]), { source: "a.sh", destination: `${target}/`, owner: "nobody" });
    expect(statSync(join(target, "a.sh"))).toMatchObject({ mode: 0o104751, uid: 65534, mtimeMs: 1_000_000_000_000 });
  });
});

describe("a link", () => {
  it("is copied itself", async () => {
    write({ link: "-> nowhere" });
    expect(await copyTo(agent, pack(["link"]), { source: "link", destination: `${target}/`, owner: "nobody", mode: "0600" })).toEqual(
      done(1),
    );
    expect(readlinkSync(join(target, "link"))).toBe("nowhere");
    expect(lstatSync(join(target, "link")).uid).toBe(65534);
  });
});

describe("a directory", () => {
  it("gives its content, hidden files too", async () => {
    write({ "src/.hidden": "h", "src/sub/x": "x", "src/empty/": "", other: "o" });
    const archive = pack(["other", "src", "src/.hidden", "src/empty", "src/sub", "src/sub/x"]);
    expect(await copyTo(agent, archive, { source: "src", destination: join(target, "new/app") })).toEqual(done(5));
    expect(treeOf(join(target, "new/app"))).toEqual({ ".hidden": "h", empty: "dir", sub: "dir", "sub/x": "x" });
  });

  it.each(["src/*", "src/**/*.txt", "src/[ab].txt", "src/{a,b}.txt"])("is meant by the glob %s", async (source) => {
    write({ "src/a.txt": "a", "src/sub/b.txt": "b" });
    expect(await copyTo(agent, pack(["src/a.txt", "src/sub/b.txt"]), { source, destination: target })).toEqual(done(2));
    expect(treeOf(target)).toEqual({ "a.txt": "a", sub: "dir", "sub/b.txt": "b" });
  });

  it.each([".", "./", "*", "*.txt", "a/.."])("is the whole context for %s", async (source) => {
    write({ "a.txt": "a" });
    expect(await copyTo(agent, pack(["a.txt"]), { source, destination: join(target, "app") })).toEqual(done(1));
    expect(treeOf(target)).toEqual({ app: "dir", "app/a.txt": "a" });
  });

  it("is merged into what is there", async () => {
    write({ "bin/new": "new", "etc/conf": "new", "etc/link": "new", "lib/x": "x", "dir/y": "y" });
    write(
      {
        "usr/bin/old": "old",
        bin: "-> usr/bin",
        "etc/conf": "old",
        "etc/keep": "keep",
        "etc/link": "-> keep",
        lib: "-> nowhere",
        dir: "file",
      },
      target,
    );
    execFileSync("chmod", ["700", join(target, "etc")]);
    const archive = pack(["bin", "bin/new", "dir", "dir/y", "etc", "etc/conf", "etc/link", "lib", "lib/x"]);
    expect(await copyTo(agent, archive, { destination: target, owner: "nobody" })).toEqual(done(9));
    expect(treeOf(target)).toEqual({
      ...{ usr: "dir", "usr/bin": "dir", "usr/bin/old": "old", "usr/bin/new": "new", bin: "-> usr/bin" },
      ...{ etc: "dir", "etc/conf": "new", "etc/keep": "keep", "etc/link": "new" },
      ...{ lib: "dir", "lib/x": "x", dir: "dir", "dir/y": "y" },
    });
    expect(statSync(join(target, "etc"))).toMatchObject({ uid: 0, mode: 0o40700 });
    expect(statSync(join(target, "etc/conf")).uid).toBe(65534);
    expect(statSync(join(target, "lib")).uid).toBe(65534);
  });

  it("gets mode and owner with all that is in it", async () => {
    write({ "src/sub/x": "x" });
    const parameters = { source: "src", destination: join(target, "app"), owner: "nobody:root", mode: "0710" };
    expect(await copyTo(agent, pack(["src", "src/sub", "src/sub/x"]), parameters)).toEqual(done(3));
    expect(modeOf(join(target, "app/sub"))).toBe("710");
    expect(statSync(join(target, "app/sub/x"))).toMatchObject({ uid: 65534, gid: 0, mode: 0o100710 });
  });

  it("gets the mode of an entry that comes after what is in it", async () => {
    write({ "sub/x": "x" });
    execFileSync("chmod", ["750", join(context, "sub")]);
    expect(await copyTo(agent, pack(["sub/x", "sub"]), { destination: target })).toEqual(done(2));
    expect(modeOf(join(target, "sub"))).toBe("750");
  });

  it("cannot be replaced by a file", async () => {
    write({ a: "a" });
    write({ "a/b": "b" }, target);
    expect(await copyTo(agent, pack(["a"]), { destination: target })).toEqual({
      status: 400,
      body: { code: 400, message: `failed to move files in sandbox: ${target}/a is a directory, and would be replaced by a file` },
    });
  });
});

describe("the destination", () => {
  it("starts at the home directory of the user when there is no workdir", async () => {
    write({ a: "a" });
    const name = `skerry-copy-${process.pid}`;
    const home = execFileSync("sh", ["-c", "echo ~root"], { encoding: "utf8" }).trim();
    try {
      expect(await copyTo(agent, pack(["a"]), { source: "a", destination: name })).toEqual(done(1));
      expect(readFileSync(join(home, name), "utf8")).toBe("a");
    } finally {
      await rm(join(home, name), { force: true });
    }
  });

  it.each([
    ["below a file", "file/x", "exists and is not a directory"],
    ["a file, for a directory", "file", "exists and is not a directory"],
  ])("cannot be %s", async (_title, destination, message) => {
    write({ "src/a": "a" });
    write({ file: "" }, target);
    const { status, body } = await copyTo(agent, pack(["src", "src/a"]), { source: "src", destination, workdir: target });
    expect({ status, message: body.message }).toEqual({
      status: 400,
      message: `failed to move files in sandbox: ${target}/file ${message}`,
    });
  });
});

it("says that the source is missing", async () => {
  write({ a: "a" });
  expect(await copyTo(agent, pack(["a"]), { source: "b/*.txt", destination: target })).toEqual({
    status: 400,
    body: { code: 400, message: "failed to move files in sandbox: the source 'b/*.txt' does not exist" },
  });
});

it.each([
  [{ owner: "nobody-here" }, { uid: 0, mode: 0o100644 }, "the owner 'nobody-here' does not exist: the files belong to root"],
  [{ owner: "root:nobody-here" }, { uid: 0, gid: 0 }, "the owner 'root:nobody-here' does not exist: the files belong to root"],
  [{ mode: "u+x" }, { mode: 0o100644 }, "the mode 'u+x' is not an octal number: the files keep their modes"],
])("warns of %j, and copies nevertheless", async (parameters, stats, warning) => {
  write({ a: "a" });
  const answer = await copyTo(agent, pack(["a"], "--mode=0644"), { source: "a", destination: `${target}/`, ...parameters });
  expect(answer).toEqual({ status: 200, body: { entries: 1, warnings: [warning] } });
  expect(statSync(join(target, "a"))).toMatchObject(stats);
});

it.each([
  ["123", { uid: 123, gid: 123 }],
  ["123:456", { uid: 123, gid: 456 }],
  ["nobody", { uid: 65534, gid: 65534 }],
  [":123", { uid: 0, gid: 123 }],
])("takes %s for an owner", async (owner, stats) => {
  write({ a: "a" });
  expect(await copyTo(agent, pack(["a"]), { source: "a", destination: `${target}/`, owner })).toEqual(done(1));
  expect(statSync(join(target, "a"))).toMatchObject(stats);
});

describe("an archive", () => {
  const long = `${"d".repeat(120)}/${"ü".repeat(100)}`;

  it.each(["ustar", "gnu", "pax", "v7"])("of GNU tar in the format %s", async (format) => {
    const name = format === "v7" || format === "ustar" ? "sub/x" : long;
    write({ [name]: "x", link: `-> ${name}` });
    linkSync(join(context, name), join(context, "hard"));
    const names = [dirname(name), name, "hard", "link"];
    expect(await copyTo(agent, pack(names, `--format=${format}`), { destination: target })).toEqual(done(4));
    expect(treeOf(target)).toEqual({ [dirname(name)]: "dir", [name]: "x", hard: "x", link: `-> ${name}` });
    expect(lstatSync(join(target, "hard")).ino).toBe(lstatSync(join(target, name)).ino);
  });

  it.each(["--sparse-version=0.1", "--sparse-version=1.0", "--format=gnu"])("with a sparse file, %s", async (option) => {
    execFileSync(
      "sh",
      [
        "-c",
        "for i in 1 3 5 7 9 11 13; do printf data$i | dd of=holes bs=1 seek=$((i*200000)) conv=notrunc; done; truncate -s 20M holes; truncate -s 3M empty",
      ],
      {
        ...{ cwd: context, stdio: "ignore" },
      },
    );
    expect(
      await copyTo(agent, pack(["holes", "empty"], "--sparse", ...(option.includes("gnu") ? [option] : ["--format=posix", option])), {
        destination: target,
      }),
    ).toEqual(done(2));
    for (const name of ["holes", "empty"]) {
      expect(readFileSync(join(target, name)).equals(readFileSync(join(context, name)))).toBe(true);
      // In gVisor the holes count as well, for both files.
      expect(statSync(join(target, name)).blocks).toBeLessThan(statSync(join(context, name)).blocks + 500);
    }
  });

  it.each([
    ["compressed", (bytes: Buffer) => gzipSync(bytes)],
    ["in two compressed parts", (bytes: Buffer) => Buffer.concat([gzipSync(bytes.subarray(0, 700)), gzipSync(bytes.subarray(700))])],
    ["followed by zeros", (bytes: Buffer) => Buffer.concat([bytes, Buffer.alloc(100_000)])],
  ])("that is %s", async (_title, change) => {
    write({ a: "a".repeat(2000) });
    expect(await copyTo(agent, change(pack(["a"])), { destination: target })).toEqual(done(1));
    expect(readFileSync(join(target, "a"), "utf8")).toBe("a".repeat(2000));
  });

  it("with names that are not UTF-8", async () => {
    const name = Buffer.from([0x61, 0xff, 0xfe, 0x62]);
    expect(await copyTo(agent, tarOf([{ name, content: "x" }]), { destination: target })).toEqual(done(1));
    expect(readdirSync(target, { encoding: "buffer" })).toEqual([name]);
  });

  it("of nothing leaves an empty directory", async () => {
    expect(await copyTo(agent, tarOf([]), { destination: join(target, "new") })).toEqual(done(0));
    expect(treeOf(target)).toEqual({ new: "dir" });
  });

  it("of large files arrives as it is", async () => {
    const content = Buffer.alloc(5 * 1024 * 1024 + 4321, "0123456789abcdef!");
    const archive = gzipSync(
      tarOf([
        { name: "large", content },
        { name: "small", content: "s" },
      ]),
      { level: 1 },
    );
    expect(await copyTo(agent, archive, { destination: target })).toEqual(done(2));
    expect(readFileSync(join(target, "large")).equals(content)).toBe(true);
    expect(gunzipSync(archive).length).toBeGreaterThan(content.length);
  });

  it("with a size and a time that only an extended header can state", async () => {
    const archive = tarOf([paxEntry({ size: "5", mtime: "1234567890.5", path: "näme" }), { name: "short", content: "12345", size: 0 }]);
    expect(await copyTo(agent, Buffer.concat([archive]), { destination: target })).toEqual(done(1));
    expect(statSync(join(target, "näme"))).toMatchObject({ size: 5, mtimeMs: 1_234_567_890_500 });
    expect(tarEntry({ name: "x" })).toHaveLength(512);
  });
});

it("is refused without the token once there is one", async () => {
  expect((await agent.init({ accessToken: "secret" })).status).toBe(204);
  try {
    expect((await copyTo(agent, tarOf([]), { destination: target })).status).toBe(401);
  } finally {
    await agent.init({}, { "X-Access-Token": "secret" });
  }
});

it.each([
  ["", "the parameter source is missing"],
  ["source=.&user=root", "the parameter destination is missing"],
  ["source=.&destination=%00&user=root", "a path can't contain a NUL character"],
  ["source=.&destination=x&user=nobody-here", "failed to move files in sandbox: invalid username: 'nobody-here'"],
])("refuses the query %s", async (query, message) => {
  const response = await agent.fetch(`/copy?${query}`, { method: "POST", body: tarOf([]) });
  expect({ status: response.status, body: await response.json() }).toEqual({ status: 400, body: { code: 400, message } });
});
