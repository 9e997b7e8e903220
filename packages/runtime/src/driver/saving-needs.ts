// Computes what a checkpoint of open deleted files needs. gVisor reads each such file completely into the heap of its kernel, including
// holes, and encodes it byte by byte. A restore decodes the files and writes them to the disk again.

import { basename } from "node:path";
import { PlatformError } from "@skerry/base";
import type { DeletedFile } from "../deleted-files.privileged.ts";
import type { SavingNeeds } from "../runtime.ts";

const MIB = 1024 * 1024;
/** Heap bytes for one byte of a file: 16 for the encoding and 1 for the byte itself. Measured: 16.2 to 17. */
const HEAP_FACTOR = 18;
/** Additional heap for partly filled pages and memory that is not swept yet. */
const HEAP_SLACK_BYTES = 32 * MIB;
/** Limit of all deleted files together. gVisor saves and restores them at 6 MB/s on two busy CPUs. */
export const MAX_DELETED_BYTES = 128 * MIB;
/** Limit of a file name. A restore creates the file again and may add 36 characters to the name; the host allows 255. */
const LONGEST_NAME = 219;
const MAX_SHOWN = 200;

/** Memory and disk space that saving these files needs. Throws PlatformError("state_not_savable") when gVisor cannot save them. */
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
 * The refusal in the error output of a checkpoint that failed because of a file that only gVisor's kernel knows. Undefined when the
 * checkpoint failed for another reason.
 */
export function refusalIn(stderr: string): PlatformError | undefined {
  const match = /gofer\.dentry\("((?:[^"\\\n]|\\.){0,4096})"\)\.(?:prepareSaveDead|beforeSave): /.exec(stderr);
  if (!match) return undefined;
  return notSavable(`a process holds ${shown(`/${match[1]}`)} open, a deleted link, FIFO or socket`);
}

/** `why` is shown to callers and names the file or process. */
export function notSavable(why: string): PlatformError {
  return new PlatformError("state_not_savable", why, { publicMessage: why });
}

/** A path for messages, without characters that could mislead a reader. The guest chose the path. */
export function shown(path: string): string {
  if (path === "") return "(a path of more than 4,095 bytes)";
  const clean = path.replace(/[\p{C}"'\\]/gu, "?");
  return clean.length > MAX_SHOWN ? `"…${clean.slice(-MAX_SHOWN)}"` : `"${clean}"`;
}
