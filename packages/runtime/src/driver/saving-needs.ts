// What it takes to save a sandbox that has deleted files open. gVisor reads each of them as a whole into its kernel's heap, holes
// included, and encodes it byte by byte; when the sandbox is brought back, it decodes them and writes them to the disk again.

import { basename } from "node:path";
import { PlatformError } from "@skerry/base";
import type { DeletedFile } from "../deleted-files.privileged.ts";
import type { SavingNeeds } from "../runtime.ts";

const MIB = 1024 * 1024;
/** Bytes of gVisor's heap for one byte of a file: 16 for its encoding and one for itself; measured: 16.2 to 17. */
const HEAP_FACTOR = 18;
/** What the heap takes beside that, in pages that are not full and until it is swept. */
const HEAP_SLACK_BYTES = 32 * MIB;
/** Of all files together. On two busy processors gVisor has been seen to save 6 MB/s, and to bring them back as slowly. */
export const MAX_DELETED_BYTES = 128 * MIB;
/** gVisor creates the file anew to bring it back. Where the name is taken it adds 36 characters, and the host allows 255. */
const LONGEST_NAME = 219;
const MAX_SHOWN = 200;

/** Throws PlatformError("state_not_savable"). */
export function savingNeeds(files: readonly DeletedFile[]): SavingNeeds {
  for (const file of files) {
    if (file.kind === "link" || file.kind === "other")
      throw notSavable(`a process holds ${shown(file.path)} open, a deleted link, FIFO or socket`);
    if (Buffer.byteLength(basename(file.path)) > LONGEST_NAME)
      throw notSavable(`a process holds the deleted file ${shown(file.path)} open, whose name is too long`);
  }
  const regular = files.filter(({ kind, bytes }) => kind === "file" && bytes > 0);
  const [largest] = regular.toSorted((a, b) => b.bytes - a.bytes);
  if (!largest) return { memoryBytes: 0, diskBytes: 0, cause: "" };
  const sum = regular.reduce((total, { bytes }) => total + bytes, 0);
  const stored = regular.reduce((total, { storedBytes }) => total + storedBytes, 0);
  const others = regular.length > 1 ? ` and ${regular.length - 1} others, ${sum} bytes together` : "";
  const cause = `processes hold the deleted file ${shown(largest.path)} (${largest.bytes} bytes)${others} open`;
  if (sum > MAX_DELETED_BYTES) throw notSavable(`${cause}; up to ${MAX_DELETED_BYTES} bytes of such files can be kept`);
  return { memoryBytes: sum * HEAP_FACTOR + HEAP_SLACK_BYTES, diskBytes: Math.max(0, sum - stored), cause };
}

/**
 * What gVisor says of files that are only in its own memory, which the host does not see. Undefined where it failed for
 * something else.
 */
export function refusalIn(stderr: string): PlatformError | undefined {
  const match = /gofer\.dentry\("((?:[^"\\\n]|\\.){0,4096})"\)\.(?:prepareSaveDead|beforeSave): /.exec(stderr);
  if (!match) return undefined;
  return notSavable(`a process holds ${shown(`/${match[1]}`)} open, a deleted link, FIFO or socket`);
}

/** `why` is for callers: what in the sandbox it is about. */
export function notSavable(why: string): PlatformError {
  return new PlatformError("state_not_savable", why, { publicMessage: why });
}

/** A guest chose it. */
function shown(path: string): string {
  if (path === "") return "(a path of more than 4,095 bytes)";
  const clean = path.replace(/[\p{C}"'\\]/gu, "?");
  return clean.length > MAX_SHOWN ? `"…${clean.slice(-MAX_SHOWN)}"` : `"${clean}"`;
}
