import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { openFolderBlobStore } from "@skerry/blobs";
import { blobStoreContract } from "@skerry/testkit/contracts/blob-store-contract";
import { afterAll, expect, it } from "vitest";

const base = mkdtempSync(join(tmpdir(), "skerry-blobs-"));
let count = 0;
const newRoot = () => {
  count += 1;
  return join(base, String(count));
};
afterAll(() => rmSync(base, { recursive: true, force: true }));

blobStoreContract({
  name: "folder",
  open: () => openFolderBlobStore(newRoot()),
  close: async () => {},
});

const WRITER = `
  import { openFolderBlobStore } from "@skerry/blobs";
  const store = await openFolderBlobStore(process.argv[1]);
  async function* slow() {
    for (let piece = 0; piece < 20; piece += 1) {
      yield Buffer.alloc(65536, process.argv[2]);
      if (piece === 3) process.stdout.write("begun");
    }
  }
  for (;;) await store.put(slow());`;

it("a process that is killed in a put leaves no half blob, and its remains go with the next start", async () => {
  const root = newRoot();
  for (let round = 0; round < 8; round += 1) {
    const child = spawn(process.execPath, ["--input-type=module", "--eval", WRITER, root, "x"], {
      cwd: import.meta.dirname,
      stdio: ["ignore", "pipe", "inherit"],
    });
    await Promise.race([once(child.stdout, "data"), once(child, "exit")]);
    expect(child.exitCode).toBe(null);
    await delay(round * 3);
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
    const store = await openFolderBlobStore(root);
    expect(readdirSync(join(root, "staging"))).toEqual([]);
    for (const digest of await store.list()) expect(await store.size(digest)).toBe(20 * 65_536);
  }
});

it("opening a store leaves what another process is writing", async () => {
  const root = newRoot();
  const store = await openFolderBlobStore(root);
  async function* slow(): AsyncGenerator<Uint8Array> {
    yield Buffer.from("a");
    await openFolderBlobStore(root);
    expect(readdirSync(join(root, "staging"))).toHaveLength(1);
    yield Buffer.from("b");
  }
  const digest = await store.put(slow());
  expect(await store.size(digest)).toBe(2);
  expect(existsSync(join(root, "staging"))).toBe(true);
  expect(readdirSync(join(root, "staging"))).toEqual([]);
});
