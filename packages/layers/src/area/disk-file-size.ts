// How large a disk file has to be for its file system to offer a given size. ext4 takes its tables out of the file's size,
// and users compare the size that `df` shows with the one they asked for: it must not be less.

const MIB = 1024 * 1024;
export const BLOCK_BYTES = 4096;
/** A file for each 8 KiB: trees of small files (packages of Node.js, of Python) run out of space before they run out of inodes. */
export const BYTES_PER_INODE = 8192;
export const INODE_BYTES = 256;
const GROUP_BYTES = 8 * BLOCK_BYTES * BLOCK_BYTES;
/** Two bitmaps and a descriptor for each group, and copies of the super block and the descriptors in some of them. */
const GROUP_OVERHEAD_BYTES = 5 * BLOCK_BYTES;
/** A last group that is hardly larger than its own tables would be left out. */
const LEAST_GROUP_BYTES = 4 * MIB;
/** mkfs makes no file system that is smaller, with a journal and room for anything beside it. */
const LEAST_SIZE_MB = 8;
const LARGEST_SIZE_MB = 8 * 1024 * 1024;

export interface DiskFileSize {
  readonly fileBytes: number;
  readonly journalMb: number;
}

/** Throws RangeError for a size that no disk file can have. */
export function diskFileSizeFor(sizeMb: number): DiskFileSize {
  if (!Number.isInteger(sizeMb) || sizeMb < LEAST_SIZE_MB || sizeMb > LARGEST_SIZE_MB) {
    throw new RangeError(`a disk has ${LEAST_SIZE_MB} to ${LARGEST_SIZE_MB} MiB, not ${sizeMb}`);
  }
  // What is written goes through the journal again and again, so all of it takes space on the host in the end.
  const journalMb = sizeMb < 1024 ? 4 : 16;
  const wanted = (sizeMb + journalMb + 1) * MIB;
  const share = 1 - INODE_BYTES / BYTES_PER_INODE - GROUP_OVERHEAD_BYTES / GROUP_BYTES;
  const fileBytes = Math.ceil(wanted / share / MIB) * MIB;
  const last = fileBytes % GROUP_BYTES;
  return { fileBytes: last > 0 && last < LEAST_GROUP_BYTES ? fileBytes - last + LEAST_GROUP_BYTES : fileBytes, journalMb };
}
