// Layers on disk: `<root>/<first 24 hex digits>/` is the tree, and `<root>/<…>.json` is its record.
//
// The record is written after the tree is complete and in its place, and it is removed before the tree: a tree without a record is
// the remains of an interrupted adoption or removal. `staging` has trees that are being filled, `holds` says which layers must stay,
// and `trash` takes trees until their files are deleted.

import { existsSync, readdirSync, readFileSync, unlinkSync } from "node:fs";
import { chmod, mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { errnoOf, PlatformError, reachCrashPoint, runCommand } from "@skerry/base";
import { syncDirectory, syncFilesystemInBackground } from "@skerry/base/linux";
import { digestTree } from "./digest.privileged.ts";
import { type LayerDigest, parseLayerDigest, SHORT_NAME, SHORT_NAME_LENGTH, shortNameOf } from "./layer-digest.ts";
import { LayerHolds } from "./layer-holds.privileged.ts";
import { moveInto, Staging } from "./staging.privileged.ts";
import { StoreLocks } from "./store-locks.privileged.ts";

const UNFINISHED_RECORD = ".json.new";
/** A layer of millions of files takes minutes. */
const DELETE_TIMEOUT_MS = 3_600_000;

export interface LayerStore {
  /** A new empty directory on the store's own file system. The caller fills it and adopts it, or removes it. */
  stagingDir(): Promise<string>;
  /**
   * Computes the digest of a staged tree and moves the tree to its place. If the layer exists already, the store keeps it and removes
   * the staged tree. With `holder`, that holder holds the layer from before it exists. With `expected`, throws
   * PlatformError("layer_damaged") when the tree has another digest.
   */
  adopt(stagingDir: string, options?: AdoptOptions): Promise<LayerDigest>;
  /** Removes a staged tree. Does nothing when it was adopted. */
  discard(stagingDir: string): Promise<void>;
  /** The directory of a layer. Throws PlatformError("layer_missing"). */
  path(digest: LayerDigest): Promise<string>;
  has(digest: LayerDigest): Promise<boolean>;
  /** The size of a layer's files, and how many entries its tree has. Throws PlatformError("layer_missing"). */
  about(digest: LayerDigest): Promise<LayerRecord>;
  /** All layers, without those whose record is damaged. */
  list(): readonly LayerDigest[];
  /** Replaces the layers that a holder holds, each of which stays until the holder lets go. False when one of them is missing. */
  hold(holder: string, digests: readonly LayerDigest[]): Promise<boolean>;
  /** The holder holds all layers that exist now, beside those that it holds already. */
  holdAll(holder: string): void;
  release(holder: string): void;
  /** The names of all holders. */
  holders(): readonly string[];
  /** The digests that any holder holds. */
  held(): ReadonlySet<string>;
  /**
   * Removes a layer, unless a holder holds it or `isInUse` returns true. A caller that takes a layer into use records that first, where
   * `isInUse` finds it, and then calls `path`, which throws if the removal came first. Returns whether the layer was removed; its
   * files are deleted by `sweep`.
   */
  remove(digest: LayerDigest, isInUse: () => boolean): Promise<boolean>;
  /** Deletes the remains of removed layers, of interrupted adoptions and of staging directories whose process has ended. */
  sweep(): Promise<void>;
}

export interface AdoptOptions {
  readonly holder?: string;
  readonly expected?: LayerDigest;
}

export interface LayerRecord {
  readonly digest: LayerDigest;
  readonly sizeBytes: number;
  readonly entries: number;
}

export async function openLayerStore(root: string): Promise<LayerStore> {
  const store = new DirectoryLayerStore(root);
  await store.open();
  return store;
}

class DirectoryLayerStore implements LayerStore {
  readonly #root: string;
  readonly #trash: string;
  readonly #locks: StoreLocks;
  readonly #holds: LayerHolds;
  readonly #staging: Staging;

  constructor(root: string) {
    this.#root = root;
    this.#trash = join(root, "trash");
    this.#locks = new StoreLocks(root);
    this.#holds = new LayerHolds(root);
    this.#staging = new Staging(root, this.#locks);
  }

  async open(): Promise<void> {
    await mkdir(this.#trash, { recursive: true, mode: 0o700 });
    // Layers contain set-user-id programs, which no other user of the host may reach.
    await chmod(this.#root, 0o700);
    await this.#locks.open();
    await this.#staging.open();
    this.#holds.open();
  }

  stagingDir(): Promise<string> {
    return this.#staging.create();
  }

  async adopt(stagingDir: string, { holder, expected }: AdoptOptions = {}): Promise<LayerDigest> {
    // The sync comes before the record, which says after a power loss that the whole tree is there. The disk works while this reads.
    const [tree] = await Promise.all([digestTree(stagingDir), syncTree(stagingDir)]);
    const digest = parseLayerDigest(tree.digest);
    if (expected !== undefined && digest !== expected) {
      throw new PlatformError("layer_damaged", `the tree of layer ${expected} has the digest ${digest}`);
    }
    const short = shortNameOf(digest);
    {
      await using _lock = await this.#locks.layer(short);
      if (holder !== undefined) this.#holds.set(holder, [...new Set([...this.#holds.of(holder).map(parseLayerDigest), digest])]);
      if (await this.#readRecord(short, digest)) await moveInto(stagingDir, this.#trash);
      else {
        // Without a record, a tree in this place is a remainder, and the lock keeps others from adopting now.
        await moveInto(this.#treePath(short), this.#trash);
        await rename(stagingDir, this.#treePath(short));
        await writeDurably(this.#recordPath(short), JSON.stringify({ ...tree, digest } satisfies LayerRecord));
      }
    }
    await this.#staging.forget(stagingDir);
    // The layer is there. Files that cannot be deleted now are deleted by the next sweep.
    await this.#emptyTrash().catch(() => {});
    return digest;
  }

  async discard(stagingDir: string): Promise<void> {
    await moveInto(stagingDir, this.#trash);
    await this.#staging.forget(stagingDir);
    await this.#emptyTrash();
  }

  async path(digest: LayerDigest): Promise<string> {
    await this.about(digest);
    return this.#treePath(shortNameOf(digest));
  }

  async has(digest: LayerDigest): Promise<boolean> {
    return (await this.#readRecord(shortNameOf(digest), digest)) !== undefined;
  }

  async about(digest: LayerDigest): Promise<LayerRecord> {
    const record = await this.#readRecord(shortNameOf(digest), digest);
    if (!record) throw new PlatformError("layer_missing", `layer ${digest} is not on this machine`);
    return record;
  }

  list(): readonly LayerDigest[] {
    return readdirSync(this.#root).flatMap((name) => (name.endsWith(".json") ? (digestIn(join(this.#root, name)) ?? []) : []));
  }

  async hold(holder: string, digests: readonly LayerDigest[]): Promise<boolean> {
    // The hold comes before the look: a removal that starts later sees the hold, and one under way is over before the look.
    this.#holds.set(holder, digests);
    for (const digest of digests) {
      await using _lock = await this.#locks.layer(shortNameOf(digest));
      if (!(await this.has(digest))) return false;
    }
    return true;
  }

  holdAll(holder: string): void {
    this.#holds.set(holder, [...new Set([...this.#holds.of(holder).map(parseLayerDigest), ...this.list()])]);
  }

  release(holder: string): void {
    this.#holds.release(holder);
  }

  holders(): readonly string[] {
    return this.#holds.holders();
  }

  held(): ReadonlySet<string> {
    return this.#holds.all();
  }

  async remove(digest: LayerDigest, isInUse: () => boolean): Promise<boolean> {
    const short = shortNameOf(digest);
    await using _lock = await this.#locks.layer(short);
    if (!(await this.#readRecord(short, digest))) return false;
    // No wait between these looks and the removal of the record.
    if (this.#holds.all().has(digest) || isInUse()) return false;
    unlinkSync(this.#recordPath(short));
    reachCrashPoint("layer.record-removed");
    // A power loss must not bring the record back after files of the tree are gone.
    syncDirectory(this.#root);
    await moveInto(this.#treePath(short), this.#trash);
    reachCrashPoint("layer.tree-moved");
    return true;
  }

  async sweep(): Promise<void> {
    await this.#staging.sweep(this.#trash);
    for (const name of await readdir(this.#root)) {
      const [short = "", rest] = [name.slice(0, SHORT_NAME_LENGTH), name.slice(SHORT_NAME_LENGTH)];
      if (!SHORT_NAME.test(short) || !["", UNFINISHED_RECORD].includes(rest)) continue;
      await using _lock = await this.#locks.layer(short);
      await rm(join(this.#root, `${short}${UNFINISHED_RECORD}`), { force: true });
      if (!existsSync(this.#recordPath(short))) await moveInto(this.#treePath(short), this.#trash);
    }
    await this.#emptyTrash();
  }

  /** In a process of its own: a layer can have millions of files. */
  async #emptyTrash(): Promise<void> {
    if ((await readdir(this.#trash)).length === 0) return;
    await using _lock = await this.#locks.trash();
    const names = await readdir(this.#trash);
    const paths = names.map((name) => join(this.#trash, name));
    await runCommand("nice", ["rm", "-rf", "--one-file-system", "--", ...paths], { timeoutMs: DELETE_TIMEOUT_MS });
  }

  #treePath(short: string): string {
    return join(this.#root, short);
  }

  #recordPath(short: string): string {
    return join(this.#root, `${short}.json`);
  }

  async #readRecord(short: string, digest: LayerDigest): Promise<LayerRecord | undefined> {
    try {
      const record = JSON.parse(await readFile(this.#recordPath(short), "utf8")) as LayerRecord;
      return record.digest === digest ? record : undefined;
    } catch (error) {
      if (errnoOf(error) === "ENOENT") return undefined;
      throw error;
    }
  }
}

function digestIn(recordFile: string): LayerDigest | undefined {
  try {
    return parseLayerDigest((JSON.parse(readFileSync(recordFile, "utf8")) as LayerRecord).digest);
  } catch (error) {
    // Removed since the directory was read, or damaged.
    if (errnoOf(error) === "ENOENT" || error instanceof SyntaxError || error instanceof PlatformError) return undefined;
    throw error;
  }
}

async function writeDurably(path: string, text: string): Promise<void> {
  {
    await using file = await open(`${path}.new`, "w", 0o600);
    await file.writeFile(text);
    await file.sync();
  }
  await rename(`${path}.new`, path);
  syncDirectory(dirname(path));
}

/** Syncs the whole file system: calling fsync for each file would take longer. */
async function syncTree(path: string): Promise<void> {
  await using folder = await open(path, "r");
  await syncFilesystemInBackground(folder.fd, path);
}
