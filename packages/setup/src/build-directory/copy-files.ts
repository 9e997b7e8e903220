// The files of a COPY step: what its archive contains, and what the step says then.
//
// The platform places an archive by the rules of the E2B clients, in which a glob means the directory before it, and every path below that is
// kept. Docker puts each match into the destination under its own name. So the archive of a glob is laid out flat, which is the same for both.

import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { basename, posix } from "node:path";
import { createGunzip } from "node:zlib";
import type { DockerfileStep } from "@skerry/dockerfile";
import { OperatorError } from "../operator-error.ts";
import type { BuildDirectory, DirectoryEntry, SourceMatch } from "./build-directory.ts";

export interface CopyFiles {
  /** Of the step that is sent. */
  readonly args: readonly string[];
  /** By their path in the archive. */
  readonly entries: ReadonlyMap<string, DirectoryEntry>;
  /** ADD of an archive sends the archive itself. */
  readonly archive?: DirectoryEntry;
}

/** What the platform takes for a glob. */
const WIRE_GLOB = /[*?[{]/;

/** Throws OperatorError when the source names nothing. */
export async function findCopyFiles(step: DockerfileStep, directory: BuildDirectory): Promise<CopyFiles> {
  const [source = "", destination = "", owner = "", mode = ""] = step.args;
  const matches = await directory.find(source);
  const [first] = matches;
  if (first === undefined) {
    throw new OperatorError(`line ${step.line}: no file of ${directory.root} matches "${source}"`, {
      hints: ["Check the path, which is relative to that directory, and .dockerignore."],
    });
  }
  if (matches.length === 1 && (!first.isDirectory || !WIRE_GLOB.test(source))) {
    return oneSource(first, { directory, step, rest: [destination, owner, mode] });
  }
  const base = source.split("/").slice(
    0,
    source.split("/").findIndex((part) => WIRE_GLOB.test(part)),
  );
  const entries = new Map<string, DirectoryEntry>();
  for (const match of matches) {
    for (const entry of await directory.entries(match)) {
      entries.set(posix.join(...base, match.isDirectory ? entry.path : basename(match.path)), entry);
    }
  }
  return { args: [source, destination, owner, mode], entries };
}

async function oneSource(
  match: SourceMatch,
  { directory, step, rest }: { directory: BuildDirectory; step: DockerfileStep; rest: readonly [string, string, string] },
): Promise<CopyFiles> {
  const found = await directory.entries(match);
  const [destination, owner, mode] = rest;
  const [file] = found;
  if (step.isAdd && !match.isDirectory && file !== undefined && (await isArchive(file.diskPath, step))) {
    return { args: [".", destination.endsWith("/") ? destination : `${destination}/`, owner, mode], entries: new Map(), archive: file };
  }
  // A name that the platform would take for a glob is replaced; the destination then says the name.
  const isSafe = !WIRE_GLOB.test(match.path);
  const path = isSafe ? match.path : "files/source";
  const target = !isSafe && !match.isDirectory && destination.endsWith("/") ? posix.join(destination, basename(match.path)) : destination;
  const entries = new Map(found.map((entry) => [posix.join(path, entry.path), entry] as const));
  if (match.isDirectory && path !== ".") entries.set(path, emptyDirectory(directory.root));
  return { args: [path, target, owner, mode], entries };
}

/** The directory itself, whose own mode does not matter: only what is in it is placed. */
function emptyDirectory(diskPath: string): DirectoryEntry {
  return { path: "", diskPath, type: "directory", mode: 0o755, size: 0, mtimeMs: 0, target: "" };
}

const COMPRESSED: readonly (readonly [string, string])[] = [
  ["BZh", "bzip2"],
  ["\xfd7zXZ", "xz"],
  ["\x28\xb5\x2f\xfd", "zstd"],
];

/** Docker's ADD unpacks archives that it recognises by their content. */
async function isArchive(diskPath: string, step: DockerfileStep): Promise<boolean> {
  const start = await firstBytes(diskPath);
  const text = start.toString("latin1");
  for (const [magic, name] of COMPRESSED) {
    if (!text.startsWith(magic) || !/\.(tar|t[a-z]z2?)\b/.test(diskPath)) continue;
    throw new OperatorError(`line ${step.line}: ADD does not unpack archives of ${name}: ${basename(diskPath)}`, {
      hints: ["COPY it, and unpack it with a RUN: tar -xf. Or compress it with gzip."],
    });
  }
  if (!text.startsWith("\x1f\x8b")) return isTarHeader(start);
  return isTarHeader(await firstUnpackedBytes(diskPath));
}

function isTarHeader(start: Buffer): boolean {
  return start.subarray(257, 262).toString("latin1") === "ustar";
}

async function firstBytes(diskPath: string): Promise<Buffer> {
  const file = await open(diskPath, "r");
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(512), 0, 512, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

async function firstUnpackedBytes(diskPath: string): Promise<Buffer> {
  const unpacked = createReadStream(diskPath).pipe(createGunzip());
  const parts: Buffer[] = [];
  try {
    for await (const part of unpacked) {
      parts.push(part as Buffer);
      if (Buffer.concat(parts).length >= 512) break;
    }
  } catch {
    // Not a whole file of gzip: it is copied as it is.
  }
  return Buffer.concat(parts);
}
