// Copies a tree with all its metadata. `cp` is fast and runs in its own process, but it uses whole paths, which the kernel limits to 4 KiB.
// A tree with longer paths is copied here, directory by directory.

import {
  chmodSync,
  constants,
  existsSync,
  fstatSync,
  ftruncateSync,
  lchownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readlinkSync,
  symlinkSync,
} from "node:fs";
import { open } from "node:fs/promises";
import { dirname, join } from "node:path";
import { runCommand } from "@skerry/base";
import { copyXattrs, makeNode, seekDataOrHole, setTimes } from "@skerry/base/linux";
import { type Place, walkTrees } from "./descent.privileged.ts";

const COPY_TIMEOUT_MS = 3_600_000;
/** The longest path inside a tree for `cp`: 4,095 bytes, less the longest path of the tree itself. */
const LONGEST_FOR_CP = 3_500;
const PIECE_BYTES = 2 ** 20;
const KIND = 0o170000;

/**
 * Copies the content of `from` into the directory `to` and replaces existing files. Keeps owners, times, attributes, holes and hard links.
 * Preconditions: root; nothing writes to either; a directory can be created beside `to`.
 */
export async function copyTree(from: string, to: string): Promise<void> {
  if ((await longestPath(from)) > LONGEST_FOR_CP) return copyByFolders(from, to);
  const options = ["--archive", "--reflink=auto", "--sparse=auto", "--no-target-directory"];
  await runCommand("nice", ["cp", ...options, "--", from, to], { timeoutMs: COPY_TIMEOUT_MS });
}

/** The length of the longest path below the root of the tree, in bytes. */
async function longestPath(root: string): Promise<number> {
  let longest = 0;
  await walkTrees([root], {
    async enter([place], { above }) {
      const entries = place?.entries() ?? [];
      for (const { name } of entries) longest = Math.max(longest, above + name.length);
      return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
    },
  });
  return longest;
}

async function copyByFolders(from: string, to: string): Promise<void> {
  // Files with several names, by their inode in the source: a short path to each.
  const links = mkdtempSync(join(dirname(to), "links-"));
  try {
    await walkTrees([from, to], {
      async enter([source, target], { pace }) {
        const folders: Buffer[] = [];
        for (const entry of source?.entries() ?? []) {
          const [at, copy] = [pathIn(source, entry.name), pathIn(target, entry.name)];
          if (!entry.isDirectory()) await copyEntry(at, copy, links);
          else {
            if (lstatSync(copy, { throwIfNoEntry: false }) === undefined) mkdirSync(copy, { mode: 0o700 });
            folders.push(entry.name);
          }
          await pace.keep();
        }
        return folders;
      },
      leave: ([source, target]) => copyAttributes(pathIn(source, "."), pathIn(target, ".")),
    });
  } finally {
    await runCommand("rm", ["-rf", "--", links], { timeoutMs: COPY_TIMEOUT_MS });
  }
}

function pathIn(place: Place | undefined, name: Uint8Array | "."): Buffer {
  if (!place) throw new Error("a walk through two trees has two places");
  return place.path(name);
}

async function copyEntry(at: Buffer, copy: Buffer, links: string): Promise<void> {
  const { mode, nlink, ino, rdev } = lstatSync(at);
  const linked = join(links, String(ino));
  if (nlink > 1 && existsSync(linked)) return linkSync(linked, copy);
  const kind = mode & KIND;
  if (kind === constants.S_IFLNK) symlinkSync(readlinkSync(at, { encoding: "buffer" }), copy);
  else if (kind === constants.S_IFREG) await copyContent(at, copy);
  else makeNode(copy, { mode, device: rdev });
  copyAttributes(at, copy);
  if (nlink > 1) linkSync(copy, linked);
}

/** Holes stay holes. */
async function copyContent(at: Buffer, copy: Buffer): Promise<void> {
  await using source = await open(at, constants.O_RDONLY | constants.O_NOFOLLOW);
  await using target = await open(copy, "wx", 0o600);
  const { size } = fstatSync(source.fd);
  ftruncateSync(target.fd, size);
  const piece = Buffer.allocUnsafe(Math.min(size, PIECE_BYTES));
  for (let from = seekDataOrHole(source.fd, 0, "data"); from !== undefined; from = seekDataOrHole(source.fd, from, "data")) {
    const end = seekDataOrHole(source.fd, from, "hole") ?? size;
    while (from < end) {
      const { bytesRead } = await source.read(piece, 0, Math.min(piece.length, end - from), from);
      if (bytesRead === 0) return;
      await target.write(piece, 0, bytesRead, from);
      from += bytesRead;
    }
  }
}

/** Sets the owner first: changing it removes set-user-id bits and capabilities. */
function copyAttributes(at: Buffer, copy: Buffer): void {
  const { uid, gid, mode, atimeNs, mtimeNs } = lstatSync(at, { bigint: true });
  lchownSync(copy, Number(uid), Number(gid));
  if ((Number(mode) & KIND) !== constants.S_IFLNK) chmodSync(copy, Number(mode) & 0o7777);
  copyXattrs(at, copy);
  setTimes(copy, { atimeNs, mtimeNs });
}
