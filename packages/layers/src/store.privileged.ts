// Layers on disk: `<root>/<first 24 hex digits>/` is the tree, `<root>/<…>.json` beside it says what it is.
// The record is written after the tree has its place, so a tree without a record is an interrupted adoption.
// Directory names are short because the kernel takes at most one page of overlay options.

import { randomBytes } from "node:crypto";
import { chmod, mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { PlatformError } from "@skerry/base";
import { lockFile, syncFilesystemInBackground } from "@skerry/base/linux";
import { digestTree } from "./digest.privileged.ts";

const LOOK_MS = 20;

/** "sha256:" and 64 hex digits. */
export type LayerDigest = string & { readonly __brand: "LayerDigest" };

export function parseLayerDigest(text: string): LayerDigest {
  if (!/^sha256:[0-9a-f]{64}$/.test(text)) throw new PlatformError("layer_digest_invalid", `not a layer digest: ${text.slice(0, 100)}`);
  return text as LayerDigest;
}

export interface LayerStore {
  /** A new empty directory on the store's own file system, to be filled and then adopted (or removed by the caller). */
  stagingDir(): Promise<string>;
  /** Takes a staged tree in: computes its digest, moves it to its place. A layer that exists already is kept, the staged copy removed. */
  adopt(stagingDir: string): Promise<LayerDigest>;
  /** The directory of a layer that is here. Throws PlatformError("layer_missing"). */
  path(digest: LayerDigest): Promise<string>;
  has(digest: LayerDigest): Promise<boolean>;
}

interface LayerRecord {
  readonly digest: LayerDigest;
  readonly sizeBytes: number;
  readonly entries: number;
}

export async function openLayerStore(root: string): Promise<LayerStore> {
  await mkdir(join(root, "staging"), { recursive: true, mode: 0o700 });
  // Layers hold set-user-id programs, which no user of this machine may get at. Mounts are made with root's rights.
  await chmod(root, 0o700);
  const treePath = (digest: LayerDigest) => join(root, digest.slice("sha256:".length, "sha256:".length + 24));

  async function readRecord(digest: LayerDigest): Promise<LayerRecord | undefined> {
    try {
      const record = JSON.parse(await readFile(`${treePath(digest)}.json`, "utf8")) as LayerRecord;
      return record.digest === digest ? record : undefined;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
  }

  return {
    async stagingDir() {
      const path = join(root, "staging", randomBytes(8).toString("hex"));
      await mkdir(path, { mode: 0o755 });
      return path;
    },
    async adopt(stagingDir) {
      const tree = await digestTree(stagingDir);
      const record: LayerRecord = { ...tree, digest: parseLayerDigest(tree.digest) };
      // Before its record, which says after a power cut that all of it is there.
      await syncTree(stagingDir);
      await using _lock = await lockStore(root);
      if (await readRecord(record.digest)) {
        await rm(stagingDir, { recursive: true, force: true });
        return record.digest;
      }
      // A tree without a record was left by an interrupted adoption; nothing uses it, and nobody else is adopting now.
      await rm(treePath(record.digest), { recursive: true, force: true });
      await rename(stagingDir, treePath(record.digest));
      await writeDurably(`${treePath(record.digest)}.json`, JSON.stringify(record));
      return record.digest;
    },
    async path(digest) {
      if (!(await readRecord(digest))) throw new PlatformError("layer_missing", `layer ${digest} is not on this machine`);
      return treePath(digest);
    },
    async has(digest) {
      return (await readRecord(digest)) !== undefined;
    },
  };
}

async function writeDurably(path: string, text: string): Promise<void> {
  const file = await open(`${path}.new`, "w", 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(`${path}.new`, path);
  const folder = await open(dirname(path), "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** All of its file system: asking for each file would take longer. */
async function syncTree(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await syncFilesystemInBackground(folder.fd, path);
  } finally {
    await folder.close();
  }
}

/** One adoption at a time, whichever process it is in. The lock is the kernel's: it goes with its process. */
async function lockStore(root: string): Promise<AsyncDisposable> {
  const file = await open(join(root, "adopt.lock"), "a", 0o600);
  try {
    while (!lockFile(file.fd)) await sleep(LOOK_MS);
  } catch (error) {
    await file.close();
    throw error;
  }
  return { [Symbol.asyncDispose]: () => file.close() };
}
