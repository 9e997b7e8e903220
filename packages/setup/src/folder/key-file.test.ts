import { chmod, mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { ensureKeyFile } from "./key-file.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "skerry-keys-"));
});
afterEach(async () => await rm(folder, { recursive: true, force: true }));

it("makes a file that only its owner can read, once", async () => {
  const path = join(folder, "keys");
  let made = 0;
  const make = () => {
    made += 1;
    return `key ${made}`;
  };
  expect(await ensureKeyFile(path, make)).toBe("key 1\n");
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  expect(await ensureKeyFile(path, make)).toBe("key 1\n");
  expect(made).toBe(1);
  expect(await readdir(folder)).toEqual(["keys"]);
});

it("gives processes that start at the same time the same key", async () => {
  let made = 0;
  const all = await Promise.all(
    Array.from({ length: 10 }, () =>
      ensureKeyFile(join(folder, "keys"), () => {
        made += 1;
        return `key ${made}`;
      }),
    ),
  );
  expect(new Set(all).size).toBe(1);
  expect(await readdir(folder)).toEqual(["keys"]);
});

it("takes a file that the operator wrote, and closes it to others", async () => {
  const path = join(folder, "keys");
  await writeFile(path, "mine\n");
  await chmod(path, 0o644);
  expect(await ensureKeyFile(path, () => "other")).toBe("mine\n");
  expect((await stat(path)).mode & 0o777).toBe(0o600);
});
