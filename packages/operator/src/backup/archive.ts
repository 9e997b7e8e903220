// A backup is one tar archive with paths relative to the data folder. GNU tar keeps what a layer consists of: owners, modes, hard links,
// device files (the overlay's whiteouts), extended attributes and holes.

import { rm } from "node:fs/promises";
import { runCommand } from "@skerry/base";

const LONGEST_MS = 24 * 3_600_000;
const ATTRIBUTES = ["--xattrs", "--xattrs-include=*", "--numeric-owner", "--sparse"];

/** Creates the archive, with the given paths below `root`. It is readable by root alone, because it contains keys. */
export async function createArchive(file: string, root: string, paths: readonly string[], signal: AbortSignal): Promise<void> {
  await rm(file, { force: true });
  // `tar --append` creates a missing archive. The mode comes from the file that exists already.
  await runCommand("install", ["-m", "600", "/dev/null", file], { timeoutMs: 10_000 });
  await appendToArchive(file, root, paths, signal);
}

/** Appends files and folders. Does not descend into mounted file systems. */
export async function appendToArchive(file: string, root: string, paths: readonly string[], signal: AbortSignal): Promise<void> {
  if (paths.length === 0) return;
  const options = ["--append", `--file=${file}`, ...ATTRIBUTES, "--one-file-system", `--directory=${root}`, "--null", "--files-from=-"];
  await runCommand("tar", options, { input: paths.map((path) => `${path}\0`).join(""), timeoutMs: LONGEST_MS, signal });
}

export async function extractArchive(file: string, root: string, signal: AbortSignal): Promise<void> {
  const options = ["--extract", `--file=${file}`, ...ATTRIBUTES, "--same-owner", "--same-permissions", `--directory=${root}`];
  await runCommand("tar", options, { timeoutMs: LONGEST_MS, signal });
}
