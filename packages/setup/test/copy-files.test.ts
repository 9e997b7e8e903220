import { execFileSync } from "node:child_process";
import { chmod, mkdir, mkdtemp, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { DockerfileStep } from "@skerry/dockerfile";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { BuildDirectory } from "../src/build-directory/build-directory.ts";
import { hashFiles, writeArchive } from "../src/build-directory/copy-archive.ts";
import { findCopyFiles } from "../src/build-directory/copy-files.ts";

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "skerry-copy-"));
});
afterEach(() => rm(root, { recursive: true }));

async function writeFiles(files: Record<string, string>): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(root, "dir", path)), { recursive: true });
    await writeFile(join(root, "dir", path), content);
  }
}

function step(source: string, destination = "/to/", isAdd = false): DockerfileStep {
  return { type: "COPY", args: [source, destination, "u", "0755"], line: 7, isAdd };
}

async function find(source: string, destination?: string, isAdd?: boolean) {
  const directory = await BuildDirectory.open(join(root, "dir"), join(root, "dir/Dockerfile"));
  return findCopyFiles(step(source, destination, isAdd), directory);
}

async function pathsOf(source: string): Promise<readonly string[]> {
  return [...(await find(source)).entries.keys()].sort();
}

const TREE = { "a.txt": "a", "b.txt": "b", "src/x.js": "x", "src/lib/y.js": "y", "pkg/one/p.json": "1", "pkg/two/q.json": "2" };

describe("the files of a COPY", () => {
  test.each([
    ["a.txt", ["a.txt"]],
    ["./src/../a.txt", ["a.txt"]],
    ["src", ["src", "src/lib", "src/lib/y.js", "src/x.js"]],
    ["src/", ["src", "src/lib", "src/lib/y.js", "src/x.js"]],
    ["*.txt", ["a.txt", "b.txt"]],
    ["pkg/*/*.json", ["pkg/p.json", "pkg/q.json"]],
    // What a glob matches is laid out without the names of directories.
    ["s*/l*", ["y.js"]],
    ["p*/*", ["p.json", "q.json"]],
  ])("of %s are those that Docker would copy", async (source, paths) => {
    await writeFiles(TREE);
    expect(await pathsOf(source)).toEqual(paths);
  });

  test("of the whole directory are all but what .dockerignore leaves out", async () => {
    await writeFiles({ ...TREE, ".dockerignore": "*.txt\nsrc\n!src/lib\npkg/one", ".hidden": "" });
    expect(await pathsOf(".")).toEqual([".dockerignore", ".hidden", "pkg", "pkg/two", "pkg/two/q.json", "src", "src/lib", "src/lib/y.js"]);
    expect(await pathsOf("src")).toEqual(["src", "src/lib", "src/lib/y.js"]);
    await expect(find("a.txt")).rejects.toThrow(/^line 7: no file of .* matches "a.txt"/);
  });

  test("follow the ignore file of the Dockerfile before the one of the directory", async () => {
    await writeFiles({ ...TREE, ".dockerignore": "*", "Dockerfile.dockerignore": "b.txt" });
    expect(await pathsOf("*.txt")).toEqual(["a.txt"]);
  });

  test("are named so that the platform takes no file for a glob", async () => {
    await writeFiles({ "app/[id].js": "1", "{x}/y": "2" });
    expect(await find("app/[[]id].js", "/to/")).toMatchObject({ args: ["files/source", "/to/[id].js", "u", "0755"] });
    expect((await find("app/[[]id].js", "/to/it.js")).args).toEqual(["files/source", "/to/it.js", "u", "0755"]);
    expect([...(await find("{x}")).entries.keys()]).toEqual(["y"]);
    expect((await find("app/*.js", "/to/one.js")).args.slice(0, 2)).toEqual(["files/source", "/to/one.js"]);
  });

  test("stay in the directory", async () => {
    await writeFiles(TREE);
    await writeFile(join(root, "secret"), "s");
    await symlink("../secret", join(root, "dir/out"));
    await symlink("src", join(root, "dir/in"));
    await expect(find("out")).rejects.toThrow(/out is a link that leads out of/);
    expect(await pathsOf("in/x.js")).toEqual(["in/x.js"]);
    // Inside of a directory, links are copied as links.
    expect((await find(".")).entries.get("out")).toMatchObject({ type: "link", target: "../secret" });
  });
});

describe("the archive of a COPY", () => {
  test("has the content, modes and links of the files", async () => {
    const long = `${"d".repeat(120)}/${"f".repeat(200)}.txt`;
    await writeFiles({ "t/a": "hello", [`t/${long}`]: "long", "t/ü💥": "", "t/empty/x": "1" });
    await chmod(join(root, "dir/t/a"), 0o4751);
    await symlink(`${"../".repeat(40)}to`, join(root, "dir/t/link"));
    const archive = join(root, "archive.tar");
    await writeArchive(await find("t"), archive);
    await mkdir(join(root, "out"));
    execFileSync("tar", ["-xpf", archive, "-C", join(root, "out")]);
    const listing = (directory: string) =>
      execFileSync("find", [".", "-printf", "%p %y %m %s %l\n"], { cwd: directory, encoding: "utf8" }).split("\n").sort();
    expect(listing(join(root, "out/t")).filter((line) => line !== "" && !line.startsWith(". ") && !/ d /.test(line))).toEqual(
      listing(join(root, "dir/t")).filter((line) => line !== "" && !line.startsWith(". ") && !/ d /.test(line)),
    );
    execFileSync("diff", ["-r", "--no-dereference", join(root, "dir/t"), join(root, "out/t")]);
  });

  test("has a hash of what matters", async () => {
    await writeFiles({ "t/a": "1", "t/b": "2" });
    const hash = async () => hashFiles(await find("t"));
    const first = await hash();
    expect(first).toMatch(/^[0-9a-f]{64}$/);
    await utimes(join(root, "dir/t/a"), 1, 1);
    expect(await hash()).toBe(first);
    await chmod(join(root, "dir/t/a"), 0o700);
    const afterMode = await hash();
    await writeFile(join(root, "dir/t/b"), "3");
    expect(new Set([first, afterMode, await hash()]).size).toBe(3);
  });

  test("is the archive itself for an ADD, as far as it can be unpacked", async () => {
    await writeFiles({ "t/a": "1" });
    for (const [name, flag] of [
      ["x.tar", "-c"],
      ["x.tgz", "-cz"],
      ["x.tar.xz", "-cJ"],
    ] as const) {
      execFileSync("tar", [flag, "-f", join(root, "dir", name), "-C", join(root, "dir"), "t"]);
    }
    await writeFile(join(root, "dir/no.gz"), Buffer.from([0x1f, 0x8b, 8, 0]));
    expect(await find("x.tar", "/to", true)).toMatchObject({ args: [".", "/to/", "u", "0755"], archive: { type: "file" } });
    expect(await find("x.tgz", "/to", true)).toMatchObject({ args: [".", "/to/", "u", "0755"] });
    expect((await find("no.gz", "/to", true)).args[0]).toBe("no.gz");
    expect((await find("x.tar", "/to", false)).args[0]).toBe("x.tar");
    await expect(find("x.tar.xz", "/to", true)).rejects.toThrow(/ADD does not unpack archives of xz/);
  });
});
