// The identity of a layer: a SHA-256 over everything of its tree that a sandbox can see, in one fixed order.
// Modification times count in whole seconds (what a tar archive keeps). Hard links count by content.

import { createHash, type Hash } from "node:crypto";
import type { Stats } from "node:fs";
import { lstat, open, readdir, readlink } from "node:fs/promises";
import { join } from "node:path";
import { listXattrs, readXattr } from "@skerry/base/linux";

export interface TreeDigest {
  /** "sha256:" and 64 hex digits. */
  readonly digest: string;
  /** Sum of the sizes of regular files. */
  readonly sizeBytes: number;
  readonly entries: number;
}

export async function digestTree(root: string): Promise<TreeDigest> {
  const hash = createHash("sha256");
  const totals = { sizeBytes: 0, entries: 0 };
  await digestEntry({ hash, totals, root, relative: "" });
  return { digest: `sha256:${hash.digest("hex")}`, ...totals };
}

interface Walk {
  readonly hash: Hash;
  readonly totals: { sizeBytes: number; entries: number };
  readonly root: string;
  readonly relative: string;
}

async function digestEntry(walk: Walk): Promise<void> {
  const path = join(walk.root, walk.relative);
  const stats = await lstat(path);
  walk.totals.entries += 1;
  const fields: (string | number)[] = [walk.relative, stats.mode, stats.uid, stats.gid, Math.floor(stats.mtimeMs / 1000)];
  if (stats.isSymbolicLink()) fields.push(await readlink(path));
  if (stats.isFile()) fields.push(stats.size);
  if (stats.isCharacterDevice() || stats.isBlockDevice()) fields.push(stats.rdev);
  for (const name of listXattrs(path).sort()) fields.push(name, readXattr(path, name).toString("base64"));
  walk.hash.update(`${JSON.stringify(fields)}\n`);
  if (stats.isFile()) await digestContent(walk, path, stats);
  if (stats.isDirectory()) {
    const names = await readdir(path, { encoding: "buffer" });
    for (const name of names.sort(Buffer.compare)) {
      await digestEntry({ ...walk, relative: join(walk.relative, name.toString("utf8")) });
    }
  }
}

async function digestContent(walk: Walk, path: string, stats: Stats): Promise<void> {
  walk.totals.sizeBytes += stats.size;
  const file = await open(path, "r");
  try {
    for await (const chunk of file.createReadStream({ highWaterMark: 1024 * 1024, autoClose: false })) {
      walk.hash.update(chunk as Buffer);
    }
  } finally {
    await file.close();
  }
}
