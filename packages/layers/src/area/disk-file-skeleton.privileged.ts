// The content of an empty disk file: what mkfs writes into one, a few hundred kilobytes for a disk of any usual size. mkfs runs once
// per size, on a file in memory. A new disk file is a copy of those bytes, made without starting a program or waiting for a disk.
//
// Each disk file gets its own UUID: overlayfs needs it to tell the layers of a chain apart. The feature metadata_csum_seed keeps the other
// checksums valid. The features are listed, so that disk files do not depend on the configuration of the host's mkfs.

import { randomBytes } from "node:crypto";
import { closeSync, ftruncateSync, readSync } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { runCommand } from "@skerry/base";
import { openMemoryFile, seekDataOrHole } from "@skerry/base/linux";
import { crc32c } from "./crc32c.ts";
import { BLOCK_BYTES, BYTES_PER_INODE, type DiskFileSize, INODE_BYTES } from "./disk-file-size.ts";

export interface DiskFileSkeleton {
  readonly fileBytes: number;
  readonly pieces: readonly { readonly offset: number; readonly bytes: Uint8Array }[];
}

const FEATURES =
  "none,has_journal,ext_attr,dir_index,filetype,extent,64bit,flex_bg,sparse_super2,large_file,huge_file,dir_nlink,extra_isize,metadata_csum,metadata_csum_seed";

// The super block, by Linux's documentation of ext4's layout.
const SUPER_BLOCK = 1024;
const SUPER_BLOCK_BYTES = 1024;
const UUID = 0x68;
const HASH_SEED = 0xec;
const CHECKSUM = 0x3fc;

export async function makeSkeleton({ fileBytes, journalMb }: DiskFileSize): Promise<DiskFileSkeleton> {
  const fd = openMemoryFile("disk-file");
  try {
    ftruncateSync(fd, fileBytes);
    const layout = ["-b", `${BLOCK_BYTES}`, "-i", `${BYTES_PER_INODE}`, "-I", `${INODE_BYTES}`, "-m", "0", "-J", `size=${journalMb}`];
    const extended = "lazy_itable_init=1,lazy_journal_init=1,nodiscard,num_backup_sb=0,root_owner=0:0";
    await runCommand("mkfs.ext4", ["-q", "-F", "-O", FEATURES, ...layout, "-E", extended, "/proc/self/fd/3"], { extraFds: [fd] });
    return { fileBytes, pieces: readPieces(fd, fileBytes) };
  } finally {
    closeSync(fd);
  }
}

function readPieces(fd: number, fileBytes: number): DiskFileSkeleton["pieces"] {
  const pieces: { offset: number; bytes: Uint8Array }[] = [];
  let offset = seekDataOrHole(fd, 0, "data");
  while (offset !== undefined) {
    const end = seekDataOrHole(fd, offset, "hole") ?? fileBytes;
    const bytes = Buffer.alloc(end - offset);
    readSync(fd, bytes, 0, bytes.length, offset);
    if (bytes.some((byte) => byte !== 0)) pieces.push({ offset, bytes });
    offset = end < fileBytes ? seekDataOrHole(fd, end, "data") : undefined;
  }
  return pieces;
}

/** Preconditions: the file is empty. */
export async function writeSkeleton(file: FileHandle, { fileBytes, pieces }: DiskFileSkeleton): Promise<void> {
  await file.truncate(fileBytes);
  for (const { offset, bytes } of pieces) {
    await file.write(offset === 0 ? withNewIdentity(bytes) : bytes, 0, bytes.length, offset);
  }
}

function withNewIdentity(start: Uint8Array): Uint8Array {
  const bytes = Buffer.from(start);
  const superBlock = bytes.subarray(SUPER_BLOCK, SUPER_BLOCK + SUPER_BLOCK_BYTES);
  const uuid = randomBytes(16);
  uuid.writeUInt8((uuid.readUInt8(6) & 0x0f) | 0x40, 6);
  uuid.writeUInt8((uuid.readUInt8(8) & 0x3f) | 0x80, 8);
  superBlock.set(uuid, UUID);
  superBlock.set(randomBytes(16), HASH_SEED);
  superBlock.writeUInt32LE(crc32c(superBlock.subarray(0, CHECKSUM)), CHECKSUM);
  return bytes;
}
