// Holding, removing and sweeping layers, also by several processes at once, and with kill -9 at any point.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { mountsBelow } from "@skerry/base";
import { mount } from "@skerry/base/linux";
import { type LayerStore, openLayerStore, parseLayerDigest } from "@skerry/layers";
import { afterAll, beforeEach, describe, expect, it } from "vitest";

const base = mkdtempSync(join(tmpdir(), "skerry-layer-removal-"));
let count = 0;
let root: string;
let store: LayerStore;
beforeEach(async () => {
  count += 1;
  root = join(base, String(count));
  mkdirSync(root);
  store = await openLayerStore(root);
});
afterAll(() => rmSync(base, { recursive: true, force: true }));

const UNUSED = () => false;
const trees = () => readdirSync(root).filter((name) => /^[0-9a-f]{24}/.test(name));
const below = (name: string) => readdirSync(join(root, name));

async function adopt(content: string, holder?: string) {
  const staged = await store.stagingDir();
  writeFileSync(join(staged, "content"), content);
  return await store.adopt(staged, holder === undefined ? {} : { holder });
}

describe("removing a layer", () => {
  it("takes the layer and its files away", async () => {
    const [kept, removed] = [await adopt("kept"), await adopt("removed")];
    expect(store.list().toSorted()).toEqual([kept, removed].toSorted());
    expect(await store.remove(removed, UNUSED)).toBe(true);
    expect(await store.has(removed)).toBe(false);
    await expect(store.path(removed)).rejects.toMatchObject({ code: "layer_missing" });
    expect(await store.remove(removed, UNUSED)).toBe(false);
    await store.sweep();
    expect(below("trash")).toEqual([]);
    expect(trees()).toHaveLength(2);
    expect(existsSync(join(await store.path(kept), "content"))).toBe(true);
  });

  it("is refused while something uses it", async () => {
    const digest = await adopt("used");
    expect(await store.remove(digest, () => true)).toBe(false);
    expect(await store.has(digest)).toBe(true);
  });

  it("is refused while anybody holds it, and works after the last one has let go", async () => {
    const digest = await adopt("held", "one");
    expect(await store.hold("two", [digest])).toBe(true);
    expect(store.held()).toEqual(new Set([digest]));
    store.release("one");
    expect(await (await openLayerStore(root)).remove(digest, UNUSED)).toBe(false);
    expect(await store.hold("two", [])).toBe(true);
    expect(await store.remove(digest, UNUSED)).toBe(true);
  });

  it("leaves what a symbolic link in the place of a layer points to", async () => {
    const shared = await adopt("shared");
    const path = await store.path(shared);
    const other = join(base, "linked");
    mkdirSync(other);
    for (const suffix of ["", ".json"]) symlinkSync(`${path}${suffix}`, join(other, `${path.split("/").at(-1)}${suffix}`));
    const linked = await openLayerStore(other);
    expect(await linked.remove(shared, UNUSED)).toBe(true);
    await linked.sweep();
    expect(existsSync(join(path, "content"))).toBe(true);
    expect(await store.has(shared)).toBe(true);
  });

  it("removes nothing while a hold can't be read", async () => {
    const digest = await adopt("unknown");
    writeFileSync(join(root, "holds/odd.json"), "{");
    await expect(store.remove(digest, UNUSED)).rejects.toThrow();
    expect(await store.has(digest)).toBe(true);
  });
});

describe("holds", () => {
  it("say whether all layers are there", async () => {
    const digest = await adopt("one");
    const missing = parseLayerDigest(`sha256:${"0".repeat(64)}`);
    expect(await store.hold("base", [digest, missing])).toBe(false);
    expect(await store.hold("base", [digest])).toBe(true);
  });

  it("can hold everything that is there, for a cluster that may come back", async () => {
    const digests = [await adopt("one"), await adopt("two")];
    store.holdAll("cluster-a");
    for (const digest of digests) expect(await store.remove(digest, UNUSED)).toBe(false);
    store.release("cluster-a");
    for (const digest of digests) expect(await store.remove(digest, UNUSED)).toBe(true);
  });

  it.each(["", "../x", "A", "a/b", "a".repeat(200)])("refuse %j as a holder", async (holder) => {
    await expect(store.hold(holder, [])).rejects.toMatchObject({ code: "layer_holder_invalid" });
  });
});

describe("a sweep", () => {
  it("removes what a process that ended was merging, with its mount", async () => {
    const view = join(root, "staging/abandoned/view");
    mkdirSync(view, { recursive: true });
    mount({ source: "tmpfs", target: view, type: "tmpfs" });
    writeFileSync(join(view, "merged"), "");
    await store.sweep();
    expect(mountsBelow(root)).toEqual([]);
    expect(below("staging")).toEqual([]);
    expect(below("trash")).toEqual([]);
  });

  it("keeps what this process is filling, and takes what another one has left", async () => {
    const mine = await store.stagingDir();
    const child = run(`
      import { openLayerStore } from "@skerry/layers";
      const path = await (await openLayerStore(process.argv[1])).stagingDir();
      process.stdout.write(path);
      setInterval(() => {}, 1000);`);
    const [printed] = (await once(child.stdout ?? child, "data")) as [Buffer];
    const theirs = printed.toString();
    await store.sweep();
    expect([mine, theirs].map(existsSync)).toEqual([true, true]);
    child.kill("SIGKILL");
    await once(child, "exit");
    await store.sweep();
    expect([mine, theirs].map(existsSync)).toEqual([true, false]);
    rmSync(mine, { recursive: true });
    await store.sweep();
    expect(below("locks").filter((name) => name.startsWith("staging-"))).toEqual([]);
  });

  it("takes trees without a record", async () => {
    const digest = await adopt("half");
    rmSync(`${await store.path(digest)}.json`);
    await store.sweep();
    expect(trees()).toEqual([]);
    expect(below("trash")).toEqual([]);
  });
});

const WORKER = `
  import { readFileSync, writeFileSync } from "node:fs";
  import { join } from "node:path";
  import { openLayerStore } from "@skerry/layers";
  const [root, role] = process.argv.slice(1);
  const store = await openLayerStore(root);
  const pick = (n) => Math.floor(Math.random() * n);
  process.stdout.write("begin");
  for (;;) {
    if (role === "remover") {
      for (const digest of store.list()) await store.remove(digest, () => false);
      if (pick(4) === 0) await store.sweep();
      continue;
    }
    const content = String(pick(3));
    const staged = await store.stagingDir();
    for (let file = 0; file < 20; file += 1) writeFileSync(join(staged, String(file)), content);
    const digest = await store.adopt(staged, { holder: role });
    for (let look = 0; look < 5; look += 1) {
      const path = await store.path(digest);
      for (let file = 0; file < 20; file += 1) {
        if (readFileSync(join(path, String(file)), "utf8") !== content) throw new Error("changed");
      }
    }
    if (!(await store.hold(role, [digest]))) throw new Error("a held layer is missing");
    await store.hold(role, []);
  }`;

function run(program: string, ...args: string[]): ChildProcess {
  return spawn(process.execPath, ["--input-type=module", "--eval", program, root, ...args], {
    cwd: import.meta.dirname,
    stdio: ["ignore", "pipe", "pipe"],
  });
}

it("adoptions, holds and removals of several processes, with kill -9 in the middle, lose nothing that is held and leave nothing", async () => {
  for (let round = 0; round < 6; round += 1) {
    const workers = ["one", "two", "remover", "remover"].map((role) => run(WORKER, role));
    const errors: string[] = [];
    for (const worker of workers) worker.stderr?.on("data", (text: Buffer) => errors.push(text.toString()));
    await Promise.all(workers.map((worker) => once(worker.stdout ?? worker, "data")));
    await delay(200 + Math.random() * 300);
    for (const worker of workers) {
      const ended = once(worker, "exit");
      worker.kill("SIGKILL");
      expect(await ended, errors.join("")).toEqual([null, "SIGKILL"]);
    }
    // Whatever the processes have left: a layer with a record is whole.
    for (const digest of store.list()) expect(readdirSync(await store.path(digest))).toHaveLength(20);
  }
  for (const holder of ["one", "two"]) store.release(holder);
  for (const digest of store.list()) expect(await store.remove(digest, UNUSED)).toBe(true);
  await store.sweep();
  expect(trees()).toEqual([]);
  expect(["staging", "trash"].map(below)).toEqual([[], []]);
});
