import { execFileSync } from "node:child_process";
import { appendFileSync, chmodSync, mkdirSync, renameSync, rmdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EventType, FileType } from "@skerry/wire/filesystem";
import { beforeEach, describe, expect, it } from "vitest";
import { agentOfFile } from "./agent-under-test.ts";
import { describeEvent, inotifyDescriptors, openWatch, uploadTo, type Watch, whileStopped } from "./watching.ts";

const agent = await agentOfFile();
let folder: string;

beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "skerry-watch-")));
  return async () => {
    for (const watcher of open.splice(0)) await watcher.remove();
    await rm(folder, { recursive: true, force: true });
  };
});

/** Open watchers, which are removed together with the folder. */
const open: Watch[] = [];

async function watch(options: { path?: string; recursive?: boolean; includeEntry?: boolean } = {}): Promise<Watch> {
  const watcher = await openWatch(agent, { path: folder, ...options });
  open.push(watcher);
  return watcher;
}

async function upload(path: string, content: string, headers: Record<string, string> = {}): Promise<void> {
  await uploadTo(agent, join(folder, path), content, headers);
}

describe("what a polled watcher reports", () => {
  it("is exactly CREATE, CHMOD, WRITE in the poll right after one small upload, and then nothing", async () => {
    const watcher = await watch();
    for (const name of ["a", "b", "c"]) {
      await upload(name, "content");
      expect(await watcher.poll()).toEqual([`CREATE ${name}`, `CHMOD ${name}`, `WRITE ${name}`]);
    }
    expect(await watcher.poll()).toEqual([]);
  });

  it("differs for empty uploads, existing files and uploads with metadata", async () => {
    const watcher = await watch();
    await upload("empty", "");
    expect(await watcher.poll()).toEqual(["CREATE empty", "CHMOD empty"]);
    await upload("labelled", "x", { "X-Metadata-Colour": "grey" });
    expect(await watcher.poll()).toEqual(["CREATE labelled", "CHMOD labelled", "WRITE labelled", "CHMOD labelled"]);
    writeFileSync(join(folder, "old"), "before");
    await watcher.poll();
    await upload("old", "after");
    expect(await watcher.poll()).toEqual(["CHMOD old", "WRITE old", "WRITE old"]);
  });

  it("follows MakeDir, Move and Remove", async () => {
    mkdirSync(join(folder, "in"));
    const watcher = await watch({ path: join(folder, "in") });
    await agent.filesystem.makeDir({ path: join(folder, "in/d") });
    expect(await watcher.poll()).toEqual(["CREATE d", "CHMOD d"]);
    await agent.filesystem.move({ source: join(folder, "in/d"), destination: join(folder, "in/e") });
    expect(await watcher.poll()).toEqual(["RENAME d", "CREATE e"]);
    await agent.filesystem.move({ source: join(folder, "in/e"), destination: join(folder, "out") });
    expect(await watcher.poll()).toEqual(["RENAME e"]);
    await agent.filesystem.move({ source: join(folder, "out"), destination: join(folder, "in/f") });
    expect(await watcher.poll()).toEqual(["CREATE f"]);
    await agent.filesystem.remove({ path: join(folder, "in/f") });
    expect(await watcher.poll()).toEqual(["REMOVE f"]);
  });

  it("shows that compose puts its complete result in place with one rename", async () => {
    const watcher = await watch();
    for (const name of ["1", "2"]) writeFileSync(join(folder, name), name);
    writeFileSync(join(folder, "all"), "before");
    await watcher.poll();
    const body = JSON.stringify({ source_paths: ["1", "2"].map((name) => join(folder, name)), destination: join(folder, "all") });
    expect((await agent.fetch("/files/compose", { method: "POST", body })).status).toBe(200);
    const events = await watcher.poll();
    const temporary = events[0]?.replace("CREATE ", "") ?? "";
    expect(temporary).toMatch(/^all\.e2b-compose\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.tmp$/);
    expect(events.filter((event, index) => event !== events[index - 1])).toEqual([
      `CREATE ${temporary}`,
      `CHMOD ${temporary}`,
      `WRITE ${temporary}`,
      `RENAME ${temporary}`,
      "CREATE all",
      "REMOVE 1",
      "REMOVE 2",
    ]);
  });

  it("reports touch and chmod of the root, and nothing for reads", async () => {
    writeFileSync(join(folder, "file"), "x");
    const watcher = await watch();
    execFileSync("cat", [join(folder, "file")]);
    expect(await watcher.poll()).toEqual([]);
    utimesSync(join(folder, "file"), 1, 1);
    expect(await watcher.poll()).toEqual(["CHMOD file"]);
    execFileSync("touch", [join(folder, "new")]);
    expect(await watcher.poll()).toEqual(["CREATE new", "CHMOD new"]);
    chmodSync(folder, 0o711);
    expect(await watcher.poll()).toEqual(["CHMOD ."]);
  });

  it("ends with REMOVE of the root itself, and what comes in its place is not reported", async () => {
    const root = join(folder, "root");
    mkdirSync(root);
    writeFileSync(join(root, "a"), "");
    const watcher = await watch({ path: root });
    rmSync(root, { recursive: true });
    expect(await watcher.poll()).toEqual(["REMOVE a", "REMOVE ."]);
    mkdirSync(root);
    writeFileSync(join(root, "b"), "");
    expect(await watcher.poll()).toEqual([]);
    const other = await watch({ path: root });
    renameSync(root, join(folder, "moved"));
    writeFileSync(join(folder, "moved/c"), "");
    expect(await other.poll()).toEqual(["RENAME ."]);
  });

  it("is available to every client that knows its id", async () => {
    const { id } = await watch();
    writeFileSync(join(folder, "a"), "");
    const asNobody = { headers: { Authorization: `Basic ${btoa("nobody:")}` } };
    const { events } = await agent.filesystem.getWatcherEvents({ watcherId: id }, asNobody);
    expect(events.map(describeEvent)).toEqual(["CREATE a"]);
  });

  it("concerns the directory that a link leads to", async () => {
    mkdirSync(join(folder, "real"));
    symlinkSync("real", join(folder, "link"));
    const watcher = await watch({ path: join(folder, "link"), includeEntry: true });
    writeFileSync(join(folder, "real/x"), "");
    expect(await watcher.raw()).toMatchObject([{ name: "x", entry: { path: join(folder, "link/x") } }]);
  });

  it("excludes subdirectories, unless the client asks for them", async () => {
    mkdirSync(join(folder, "sub"));
    const watcher = await watch();
    writeFileSync(join(folder, "sub/file"), "");
    expect(await watcher.poll()).toEqual([]);
  });

  it("spells names that are not UTF-8 with replacement characters, and finds their files", async () => {
    const watcher = await watch({ includeEntry: true, recursive: true });
    const odd = Buffer.from([0x61, 0xff, 0x62]);
    mkdirSync(Buffer.concat([Buffer.from(`${folder}/`), odd]));
    await expect
      .poll(() => watcher.raw())
      .toMatchObject([{ name: "a\ufffdb", type: EventType.CREATE, entry: { type: FileType.DIRECTORY } }]);
    writeFileSync(Buffer.concat([Buffer.from(`${folder}/`), odd, Buffer.from("/文")]), "");
    expect(await watcher.raw()).toMatchObject([{ name: "a\ufffdb/文", entry: { type: FileType.FILE, name: "文" } }]);
  });
});

describe("entries of events", () => {
  it("come with CREATE, WRITE and CHMOD, and never with REMOVE and RENAME", async () => {
    const watcher = await watch({ includeEntry: true });
    await upload("file", "four", { "X-Metadata-Colour": "grey" });
    const events = await watcher.raw();
    expect(events.map(describeEvent)).toEqual(["CREATE file", "CHMOD file", "WRITE file", "CHMOD file"]);
    for (const { entry } of events) expect(entry).toMatchObject({ name: "file", path: join(folder, "file"), type: FileType.FILE });
    expect(events.at(-1)?.entry).toMatchObject({ size: 4n, metadata: { colour: "grey" } });
    // By the time the agent reads the entry, another file has the path.
    whileStopped(agent, () => {
      rmSync(join(folder, "file"));
      writeFileSync(join(folder, "file"), "");
      renameSync(join(folder, "file"), join(folder, "other"));
      writeFileSync(join(folder, "file"), "");
    });
    expect((await watcher.raw()).map((event) => [describeEvent(event), event.entry !== undefined])).toEqual([
      ["REMOVE file", false],
      ["CREATE file", true],
      ["RENAME file", false],
      ["CREATE other", true],
      ["CREATE file", true],
    ]);
  });

  it("are missing when the file no longer exists, and when the client did not ask for them", async () => {
    const asked = await watch({ includeEntry: true });
    const plain = await watch();
    whileStopped(agent, () => {
      writeFileSync(join(folder, "gone"), "");
      rmSync(join(folder, "gone"));
    });
    expect((await asked.raw()).map((event) => [describeEvent(event), event.entry])).toEqual([
      ["CREATE gone", undefined],
      ["REMOVE gone", undefined],
    ]);
    expect((await plain.raw()).map(({ entry }) => entry)).toEqual([undefined, undefined]);
  });

  it("describe the root by its own path", async () => {
    const watcher = await watch({ includeEntry: true });
    chmodSync(folder, 0o700);
    expect(await watcher.raw()).toMatchObject([{ name: ".", entry: { path: folder, type: FileType.DIRECTORY } }]);
  });
});

describe("a recursive watcher", () => {
  it("reports files in a directory that was created a moment ago", async () => {
    const watcher = await watch({ recursive: true });
    for (let round = 0; round < 10; round++) {
      await agent.filesystem.makeDir({ path: join(folder, `d${round}`) });
      await upload(`d${round}/f`, "x");
      expect(await watcher.poll()).toEqual([
        `CREATE d${round}`,
        `CHMOD d${round}`,
        `CREATE d${round}/f`,
        `CHMOD d${round}/f`,
        `WRITE d${round}/f`,
      ]);
    }
  });

  it("reports all events of an upload that creates its directories", async () => {
    const watcher = await watch({ recursive: true });
    await upload("a/b/c", "x");
    expect(await watcher.poll()).toEqual(["CREATE a", "CHMOD a", "CREATE a/b", "CHMOD a/b", "CREATE a/b/c", "CHMOD a/b/c", "WRITE a/b/c"]);
  });

  it("watches existing directories, and reports a change of a directory's mode twice: in its parent and in itself", async () => {
    mkdirSync(join(folder, "a/b"), { recursive: true });
    const watcher = await watch({ recursive: true });
    expect(await watcher.poll()).toEqual([]);
    chmodSync(join(folder, "a/b"), 0o700);
    expect(await watcher.poll()).toEqual(["CHMOD a/b", "CHMOD a/b"]);
    rmdirSync(join(folder, "a/b"));
    expect(await watcher.poll()).toEqual(["REMOVE a/b"]);
  });

  it("reports the content of a directory that is moved in, each file once, and later events in it", async () => {
    mkdirSync(join(folder, "outside/x/y"), { recursive: true });
    writeFileSync(join(folder, "outside/x/y/file"), "");
    mkdirSync(join(folder, "root"));
    const watcher = await watch({ path: join(folder, "root"), recursive: true });
    renameSync(join(folder, "outside"), join(folder, "root/in"));
    expect(await watcher.poll()).toEqual(["CREATE in", "CREATE in/x", "CREATE in/x/y", "CREATE in/x/y/file"]);
    appendFileSync(join(folder, "root/in/x/y/file"), "x");
    expect(await watcher.poll()).toEqual(["WRITE in/x/y/file"]);
  });

  it("reports each file of a tree that a program creates quickly, and none twice", async () => {
    const watcher = await watch({ recursive: true });
    const script = "for i in $(seq 30); do mkdir -p d$i/e/f; : > d$i/e/f/g; : > d$i/h; done";
    execFileSync("sh", ["-c", script], { cwd: folder });
    const created = (await watcher.poll()).filter((event) => event.startsWith("CREATE "));
    const expected = Array.from({ length: 30 }, (_, index) => `CREATE d${index + 1}`).flatMap((name) =>
      ["", "/e", "/e/f", "/e/f/g", "/h"].map((rest) => name + rest),
    );
    expect(created.sort()).toEqual(expected.sort());
  });

  it("no longer reports a directory that was moved out", async () => {
    mkdirSync(join(folder, "root/sub/deep"), { recursive: true });
    const watcher = await watch({ path: join(folder, "root"), recursive: true });
    renameSync(join(folder, "root/sub"), join(folder, "sub"));
    writeFileSync(join(folder, "sub/deep/file"), "");
    writeFileSync(join(folder, "sub/file"), "");
    expect(await watcher.poll()).toEqual(["RENAME sub"]);
    writeFileSync(join(folder, "sub/late"), "");
    expect(await watcher.poll()).toEqual([]);
  });

  it("reports the content of a directory that was renamed inside the tree under its new name", async () => {
    mkdirSync(join(folder, "a/deep"), { recursive: true });
    mkdirSync(join(folder, "b"));
    const watcher = await watch({ recursive: true });
    renameSync(join(folder, "a"), join(folder, "b/c"));
    expect(await watcher.poll()).toEqual(["RENAME a", "CREATE b/c", "CREATE b/c/deep"]);
    writeFileSync(join(folder, "b/c/deep/file"), "x");
    expect(await watcher.poll()).toEqual(["CREATE b/c/deep/file", "WRITE b/c/deep/file"]);
    mkdirSync(join(folder, "a"));
    writeFileSync(join(folder, "a/file"), "");
    expect((await watcher.poll()).sort()).toEqual(["CREATE a", "CREATE a/file"]);
  });

  it("works on a root that is a link, and follows no link below", async () => {
    mkdirSync(join(folder, "real/sub"), { recursive: true });
    mkdirSync(join(folder, "elsewhere"));
    symlinkSync("real", join(folder, "link"));
    symlinkSync("../elsewhere", join(folder, "real/away"));
    const watcher = await watch({ path: join(folder, "link"), recursive: true, includeEntry: true });
    writeFileSync(join(folder, "elsewhere/x"), "");
    writeFileSync(join(folder, "real/sub/x"), "");
    expect(await watcher.raw()).toMatchObject([{ name: "sub/x", entry: { path: join(folder, "link/sub/x") } }]);
  });

  it("watches thousands of directories, and releases them when it is removed", async () => {
    // gVisor keeps a host descriptor open for each directory and file below a watcher. On small hosts it may have 20,000.
    const names = Array.from({ length: 2000 }, (_, index) => `d${index % 50}/e${index}`);
    for (const name of names) mkdirSync(join(folder, name), { recursive: true });
    const watcher = await watch({ recursive: true });
    for (const name of names) writeFileSync(join(folder, name, "f"), "");
    const events = await watcher.poll();
    expect(events.sort()).toEqual(names.map((name) => `CREATE ${name}/f`).sort());
    expect(inotifyDescriptors(agent)).toHaveLength(1);
    for (const each of open.splice(0)) await each.remove();
    expect(inotifyDescriptors(agent)).toEqual([]);
  });

  it("gives each watcher an id of its own", async () => {
    const ids = [(await watch()).id, (await watch()).id];
    for (const id of ids) expect(id).toMatch(/^w[a-z0-9]{20}$/);
    expect(new Set(ids).size).toBe(2);
  });
});
