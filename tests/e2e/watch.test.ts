import { readdirSync } from "node:fs";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import { testCacheDir } from "@skerry/testkit";
import { runtimesFor } from "@skerry/testkit/depth";
import { type SharedPlatform, sharedPlatform } from "@skerry/testkit/run-services";
import { type FilesystemEvent, FilesystemEventType, Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { clientOf } from "./client.ts";

/** On runc, more files than the kernel's queue holds. gVisor creates files too slowly for that many. */
const STORM = { gvisor: 4000, runc: 20_000 };

describe.each(runtimesFor("watching files"))("watching on %s", (runtime) => {
  let platform: SharedPlatform;
  let sandbox: Sandbox;
  beforeAll(async () => {
    platform = await sharedPlatform(runtime);
    sandbox = await Sandbox.create(clientOf(platform));
  });
  afterAll(async () => {
    await sandbox.kill();
    await platform[Symbol.asyncDispose]();
  });

  /** Collects the events of the official client, and waits for the event that ends the test. */
  async function watch(path: string, options: { recursive?: boolean; includeEntry?: boolean } = {}) {
    const events: FilesystemEvent[] = [];
    let onEvent = () => {};
    const ended: (Error | undefined)[] = [];
    const handle = await sandbox.files.watchDir(
      path,
      (event) => {
        events.push(event);
        onEvent();
      },
      {
        ...options,
        timeoutMs: 0,
        onExit: (error) => {
          ended.push(error);
          onEvent();
        },
      },
    );
    const until = (isEnough: () => boolean) =>
      new Promise<void>((resolve) => {
        onEvent = () => isEnough() && resolve();
        onEvent();
      });
    const count = async (wanted: number) => {
      await until(() => events.length >= wanted);
      return events.map(({ type, name }) => `${type} ${name}`);
    };
    return { handle, events, ended, until, count };
  }

  it("reports one small upload as create, chmod, write", async () => {
    await sandbox.files.makeDir("plain");
    const watched = await watch("plain");
    await sandbox.files.write("plain/file", "content");
    expect(await watched.count(3)).toEqual(["create file", "chmod file", "write file"]);
    await sandbox.files.write("plain/file", "again");
    await sandbox.files.rename("plain/file", "plain/other");
    await sandbox.files.remove("plain/other");
    const expected = ["chmod file", "write file", "write file", "rename file", "create other", "remove other"];
    expect((await watched.count(9)).slice(3)).toEqual(expected);
    await watched.handle.stop();
  });

  it("reports files in a directory that was created a moment ago, with their entries", async () => {
    await sandbox.files.makeDir("tree");
    const watched = await watch("tree", { recursive: true, includeEntry: true });
    await sandbox.files.makeDir("tree/new");
    await sandbox.files.write("tree/new/file", "content");
    expect(await watched.count(5)).toEqual(["create new", "chmod new", "create new/file", "chmod new/file", "write new/file"]);
    expect(watched.events.at(-1)).toMatchObject({
      type: FilesystemEventType.WRITE,
      entry: { name: "file", path: "/home/user/tree/new/file", type: "file", size: 7 },
    });
    await sandbox.commands.run("mv tree/new tree/moved && echo x >> tree/moved/file");
    expect((await watched.count(9)).slice(5)).toEqual(["rename new", "create moved", "create moved/file", "write moved/file"]);
    await sandbox.commands.run("mv tree/moved away && echo x >> away/file && touch tree/end");
    expect((await watched.count(11)).slice(9, 11)).toEqual(["rename moved", "create end"]);
    await watched.handle.stop();
  });

  it("reports every file of a tree that a program unpacks, once", async () => {
    await sandbox.files.makeDir("unpack");
    const watched = await watch("unpack", { recursive: true });
    await sandbox.commands.run("cd unpack && for i in $(seq 40); do mkdir -p d$i/e/f && : > d$i/e/f/g; done; touch end");
    const created = () => watched.events.filter(({ type }) => type === "create").map(({ name }) => name);
    const expected = Array.from({ length: 40 }, (_, index) => [
      `d${index + 1}`,
      ...["/e", "/e/f", "/e/f/g"].map((rest) => `d${index + 1}${rest}`),
    ]);
    // The event is reported at once, while the scan of the directories continues.
    const all = [...expected.flat(), "end"];
    await watched.until(() => all.every((name) => created().includes(name)));
    expect(created().sort()).toEqual(all.sort());
    await watched.handle.stop();
  });

  it("watches thousands of directories", async () => {
    await sandbox.commands.run("mkdir -p many && cd many && for i in $(seq 40); do mkdir d$i; (cd d$i && mkdir $(seq 50)); done");
    const watched = await watch("many", { recursive: true });
    await sandbox.commands.run("for d in many/*/*; do : > $d/f; done");
    await watched.until(() => watched.events.filter(({ type }) => type === "create").length === 2000);
    await watched.handle.stop();
  });

  it("keeps up with a burst of files, or reports that it did not", async () => {
    await sandbox.files.makeDir("storm");
    const watched = await watch("storm");
    await sandbox.commands.run(`for i in $(seq ${STORM[runtime]}); do : > storm/$i; done; touch storm/last`, { timeoutMs: 120_000 });
    await watched.until(() => watched.ended.length > 0 || watched.events.some(({ name }) => name === "last"));
    if (watched.ended.length > 0) expect(watched.ended[0]?.message).toMatch(/events are lost/);
    else expect(watched.events.filter(({ type }) => type === "create").length).toBe(STORM[runtime] + 1);
    await watched.handle.stop();
  });

  it("skips /proc and /sys below the root of the sandbox", async () => {
    const watched = await watch("/", { recursive: true });
    await sandbox.files.write("/tmp/deep/file", "x");
    await watched.until(() => watched.events.some(({ name, type }) => name === "tmp/deep/file" && type === "write"));
    expect(watched.events.filter(({ name }) => /^(proc|sys)\//.test(name))).toEqual([]);
    await watched.handle.stop();
  });

  it("refuses missing paths and files", async () => {
    await sandbox.files.write("some-file", "x");
    const failure = (path: string) =>
      watch(path).then(
        () => undefined,
        (error: Error) => error.name,
      );
    expect(await failure("nowhere")).toBe("FileNotFoundError");
    expect(await failure("some-file")).toBe("InvalidArgumentError");
  });

  it("works through the official Python client", async () => {
    const environment = readdirSync(testCacheDir()).find((name) => /^python-e2b-[\d.]+$/.test(name));
    if (!environment) throw new Error(`${testCacheDir()} has no Python environment with e2b: run ./skerry test once`);
    const { stdout } = await runCommand(join(testCacheDir(), environment, "bin/python"), [join(import.meta.dirname, "watch.py")], {
      env: { PATH: "/usr/bin:/bin", HOME: "/root", ...platform.env },
      timeoutMs: 120_000,
    });
    expect(stdout).toBe("all well\n");
  });
});
