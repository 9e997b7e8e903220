// What every platform of a test run needs and none of them changes: runsc, the agent's tree, the base layer. Made by
// the operator's own set-up, once, and shared by reference.

import { cp, mkdir, readdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import type { SoakTemplate } from "@skerry/setup";
import { createDataFolder, type DataFolder, takeSetupLock, writeProcessRecord } from "@skerry/setup/folder";
import { mountSmallDisk } from "./small-disk.ts";

/** What a layer store and an agent's folder have of their own. */
const NOT_SHARED: ReadonlySet<string> = new Set(["staging", "holds", "locks", "trash", "adopt.lock", "current.json"]);
const REPO_ROOT = join(import.meta.dirname, "../../..");

export const testCacheDir = (): string => process.env.SKERRY_TEST_CACHE || "/var/cache/skerry-test";

/** Loaded when it is needed: it brings the bundler and what makes templates. */
const setUpLibrary = () => import("@skerry/setup");

let prepared: Promise<DataFolder> | undefined;

/** The cache, brought up to date with this checkout. Processes that ask at the same time wait for each other. */
export function prepareTestCache(): Promise<DataFolder> {
  prepared ??= prepare();
  return prepared;
}

/** `./skerry test` has just done it before it started the test runner, and each of the files that it runs would do it again. */
async function prepare(): Promise<DataFolder> {
  const folder = await createDataFolder(testCacheDir());
  if (process.env.SKERRY_TEST_RUN !== undefined) return folder;
  const { NO_IMAGE, setUp, silentSteps } = await setUpLibrary();
  await using _lock = await takeSetupLock(folder.lockFile, { wait: true });
  await setUp(folder, {
    repoRoot: REPO_ROOT,
    runtime: "gvisor",
    baseImage: NO_IMAGE,
    steps: silentSteps,
    signal: new AbortController().signal,
  });
  return folder;
}

/** A data folder of its own for one platform, on the cache's file system, from which a platform can start at once. */
export async function createTestDataFolder(name: string, options: { readonly diskMb?: number } = {}): Promise<DataFolder> {
  const cache = await prepareTestCache();
  const dir = join(cache.root, "runs", name);
  if (options.diskMb !== undefined) {
    await mkdir(dir, { recursive: true });
    await mountSmallDisk(dir, options.diskMb);
  }
  const folder = await createDataFolder(dir);
  // Whose it is: what a dead run left is swept away by the next one.
  await writeProcessRecord(join(folder.root, "owner.json"), process.pid);
  await cp(cache.toolsFile, folder.toolsFile);
  await cp(cache.templateFile, folder.templateFile);
  await cp(cache.agentFile, folder.agentFile);
  for (const dir of ["agent", "bin", "layers"] as const) {
    const from = join(cache.root, dir);
    await mkdir(join(folder.root, dir), { recursive: true });
    for (const entry of await readdir(from)) {
      // Trees and records are never changed once they are there; what a platform adds goes into its own folder.
      if (!NOT_SHARED.has(entry)) await symlink(join(from, entry), join(folder.root, dir, entry));
    }
  }
  return folder;
}

/** The Python that has the official SDK from PyPI. */
export async function preparePythonSdk(): Promise<string> {
  const cache = await prepareTestCache();
  const { ensurePythonSdk } = await import("@skerry/test-runner");
  return (await ensurePythonSdk(cache.root, { report: () => {}, signal: new AbortController().signal })).python;
}

/** The program of the registry that tests pull images from. */
export async function prepareTestRegistry(): Promise<string> {
  const folder = await createDataFolder(testCacheDir());
  await using _lock = await takeSetupLock(folder.lockFile, { wait: true });
  const { ensureTestRegistry } = await import("@skerry/test-runner");
  return (await ensureTestRegistry(folder.root, { report: () => {}, signal: new AbortController().signal })).binary;
}

/** The layers of the restore soak. Platforms whose data folders are made after this find them in their layer store. */
export async function prepareSoakTemplate(): Promise<SoakTemplate> {
  const folder = await prepareTestCache();
  const { ensureSoakTemplate } = await setUpLibrary();
  const { template } = await ensureSoakTemplate(folder, { repoRoot: REPO_ROOT, report: () => {}, signal: new AbortController().signal });
  return template;
}
