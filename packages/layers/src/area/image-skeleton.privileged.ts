// An empty image by heart: what mkfs writes into one, which is some hundred kilobytes for a disk of any usual size. mkfs runs once
// for a size, on a file in memory; an image is then made by writing that, without starting a program or waiting for a disk.
//
// Each image gets an identity of its own, or overlayfs could not tell the layers of a chain apart and would give up what it needs
// that for. The feature metadata_csum_seed keeps the other checksums valid. Features are spelled out, so that images don't depend on
// what this machine's mkfs is set up to do.

import { randomBytes } from "node:crypto";
import { closeSync, ftruncateSync, readSync } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { runCommand } from "@skerry/base";
import { openMemoryFile, seekDataOrHole } from "@skerry/base/linux";
import { crc32c } from "./crc32c.ts";
import { BLOCK_BYTES, BYTES_PER_INODE, type ImageSize, INODE_BYTES } from "./image-size.ts";

export interface ImageSkeleton {
  readonly imageBytes: number;
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

export async function makeSkeleton({ imageBytes, journalMb }: ImageSize): Promise<ImageSkeleton> {
  const fd = openMemoryFile("image");
  try {
    ftruncateSync(fd, imageBytes);
    const layout = ["-b", `${BLOCK_BYTES}`, "-i", `${BYTES_PER_INODE}`, "-I", `${INODE_BYTES}`, "-m", "0", "-J", `size=${journalMb}`];
    const extended = "lazy_itable_init=1,lazy_journal_init=1,nodiscard,num_backup_sb=0,root_owner=0:0";
    await runCommand("mkfs.ext4", ["-q", "-F", "-O", FEATURES, ...layout, "-E", extended, "/proc/self/fd/3"], { extraFds: [fd] });
    return { imageBytes, pieces: readPieces(fd, imageBytes) };
  } finally {
    closeSync(fd);
  }
}

function readPieces(fd: number, imageBytes: number): ImageSkeleton["pieces"] {
  const pieces: { offset: number; bytes: Uint8Array }[] = [];
  let offset = seekDataOrHole(fd, 0, "data");
  while (offset !== undefined) {
    const end = seekDataOrHole(fd, offset, "hole") ?? imageBytes;
    const bytes = Buffer.alloc(end - offset);
    readSync(fd, bytes, 0, bytes.length, offset);
    if (bytes.some((byte) => byte !== 0)) pieces.push({ offset, bytes });
    offset = end < imageBytes ? seekDataOrHole(fd, end, "data") : undefined;
  }
  return pieces;
}

/** Preconditions: the file is empty. */
export async function writeSkeleton(file: FileHandle, { imageBytes, pieces }: ImageSkeleton): Promise<void> {
  await file.truncate(imageBytes);
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
