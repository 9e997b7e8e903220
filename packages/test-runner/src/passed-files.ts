// Test files that have passed on exactly this tree, so that a long run can be interrupted and resumed, or split into parts.

import { createHash } from "node:crypto";
import { readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { runCommand, SubprocessError } from "@skerry/base";
import { OperatorError } from "@skerry/setup/folder";
import type { TestDepth } from "./test-files.ts";
import { TestRun } from "./test-run.ts";

/** Age after which results are deleted. */
const KEPT_MS = 7 * 24 * 3_600_000;

/**
 * Identifies the state of a checkout by its commit and all differences in the work tree. Throws OperatorError if the folder is not in a
 * git repository.
 */
export async function identifyTree(repoRoot: string): Promise<string> {
  const git = async (...args: string[]) =>
    (await runCommand("git", ["-C", repoRoot, "-c", `safe.directory=${repoRoot}`, ...args], { maxOutputBytes: 64 * 1024 * 1024 })).stdout;
  try {
    const hash = createHash("sha256")
      .update(await git("rev-parse", "HEAD"))
      .update(await git("diff", "HEAD", "--binary"));
    // git lists a nested repository as a folder.
    const untracked = (await git("ls-files", "--others", "--exclude-standard", "-z"))
      .split("\0")
      .filter((path) => path !== "" && !path.endsWith("/"));
    for (const path of untracked) hash.update(path).update(readFileSync(join(repoRoot, path)));
    return hash.digest("hex").slice(0, 16);
  } catch (error) {
    if (!(error instanceof SubprocessError)) throw error;
    throw new OperatorError("--resume needs a git repository, because it remembers what passed for each state of the checkout", {
      exit: "usage",
      hints: ["Run the tests in a clone, or without --resume."],
    });
  }
}

/** Creates the folder of a new run. Folders of one tree and depth sort by start time. */
export function createRun(cacheDir: string, { depth, tree }: { readonly depth: TestDepth; readonly tree: string }): TestRun {
  removeOldRuns(join(cacheDir, "results"));
  return new TestRun(join(cacheDir, "results", `${depth}-${tree}`, `${new Date().toISOString()}-${process.pid}`));
}

/** Files that passed in their last run on this tree at this depth. */
export function readPassedFiles(cacheDir: string, { depth, tree }: { readonly depth: TestDepth; readonly tree: string }): Set<string> {
  const dir = join(cacheDir, "results", `${depth}-${tree}`);
  const results = readNames(dir)
    .sort()
    .flatMap((name) => new TestRun(join(dir, name)).readResults());
  const last = new Map(results.map((result) => [result.file, result]));
  return new Set([...last.values()].filter(({ passed, failures }) => passed > 0 && failures.length === 0).map(({ file }) => file));
}

function removeOldRuns(dir: string): void {
  for (const name of readNames(dir)) {
    const path = join(dir, name);
    if (Date.now() - statSync(path).mtimeMs > KEPT_MS) rmSync(path, { recursive: true, force: true });
  }
}

function readNames(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch {
    return [];
  }
}
