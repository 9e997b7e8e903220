import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLogger } from "@skerry/base";
import { openStepCache } from "@skerry/builder";
import { parseLayerDigest } from "@skerry/layers";
import { afterEach, beforeEach, expect, test } from "vitest";

const KEEP_MS = 1_000_000;
const digest = (letter: string) => parseLayerDigest(`sha256:${letter.repeat(64)}`);
const [A, B] = [digest("a"), digest("b")];
const context = { user: "user", workdir: "/app", env: { X: "a b" } };
const step = { layers: [A, B], context };

let root: string;
let now: number;
let present: Set<string>;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "step-cache-"));
  now = Date.now();
  present = new Set([A, B]);
});
afterEach(() => rm(root, { recursive: true }));

const open = () =>
  openStepCache({
    dir: join(root, "cache"),
    layers: { has: async (layer) => present.has(layer) },
    keepMs: KEEP_MS,
    clock: { now: () => now },
    logger: createLogger({ name: "test", level: "error" }),
  });

async function filesOf(dir: string): Promise<string[]> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

test("finds what was put, in the same scope, also after it was opened again", async () => {
  const cache = await open();
  await cache.put("team", "key", step);
  expect(await cache.find("team", "key")).toEqual(step);
  expect(await cache.find("other", "key")).toBeUndefined();
  const again = await open();
  expect(again.layers()).toEqual(new Set([A, B]));
  expect(await again.find("team", "key")).toEqual(step);
});

test("a result whose layer is gone is a miss, and needs no layers any more", async () => {
  const cache = await open();
  await cache.put("team", "key", step);
  present.delete(A);
  expect(await cache.find("team", "key")).toBeUndefined();
  expect(cache.layers()).toEqual(new Set());
});

test.each([
  "",
  "{",
  "null",
  "[]",
  '{"version":1}',
  '{"version":1,"layers":["x"],"context":{"user":"","workdir":"","env":{}}}',
  '{"version":99}',
])("a damaged file (%s) is a miss", async (content) => {
  const cache = await open();
  await cache.put("team", "key", step);
  for (const file of await filesOf(root)) await writeFile(file, content);
  expect(await cache.find("team", "key")).toBeUndefined();
  expect((await open()).layers()).toEqual(new Set());
});

test("two builds that put the same key at once both succeed", async () => {
  const cache = await open();
  await Promise.all(Array.from({ length: 20 }, (_, index) => cache.put("team", "key", { layers: [index % 2 ? A : B], context })));
  expect((await cache.find("team", "key"))?.context).toEqual(context);
  expect(await filesOf(root)).toHaveLength(1);
});

test("forgets what was not used for long, and keeps what was", async () => {
  const cache = await open();
  await cache.put("team", "used", step);
  await cache.put("team", "unused", { layers: [B], context });
  now += KEEP_MS * 0.7;
  await cache.find("team", "used");
  now += KEEP_MS * 0.7;
  await cache.evict();
  expect(await cache.find("team", "unused")).toBeUndefined();
  expect(await cache.find("team", "used")).toEqual(step);
});

test("remembers what the last build of a template did", async () => {
  const cache = await open();
  expect(await cache.trail("team", "template")).toBeUndefined();
  const trail = [{ key: "k", state: "s", type: "RUN", args: "a", filesHash: "" }];
  await cache.putTrail("team", "template", trail);
  expect(await cache.trail("team", "template")).toEqual(trail);
  expect(await cache.trail("other", "template")).toBeUndefined();
});

test("a cache that cannot be written to loses results, and no build fails", async () => {
  const cache = await open();
  await cache.put("team", "key", step);
  const [file = ""] = await filesOf(root);
  await rm(file);
  await mkdir(join(file, "in-the-way"), { recursive: true });
  await cache.put("team", "key", step);
  expect(cache.layers()).toEqual(new Set());
  expect((await open()).layers()).toEqual(new Set());
});

test("what an interrupted write left is removed", async () => {
  const cache = await open();
  await cache.put("team", "key", step);
  const [file = ""] = await filesOf(root);
  await writeFile(`${file}.0123.new`, "half");
  await writeFile(join(root, "cache/of-somebody-else"), "");
  await open();
  expect((await filesOf(root)).toSorted()).toEqual([join(root, "cache/of-somebody-else"), file].toSorted());
});
