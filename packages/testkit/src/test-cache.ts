// The read-only files that all platforms of a test run share: runsc, the agent's tree and the base layer. The operator's set-up creates them
// once.

import { cp, mkdir, readdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import type { SoakTemplate } from "@skerry/setup";
import { createDataFolder, type DataFolder, takeSetupLock, writeProcessRecord } from "@skerry/setup/folder";
import { mountSmallDisk } from "./small-disk.ts";

/** What a layer store and an agent's folder have of their own. */
const NOT_SHARED: ReadonlySet<string> = new Set(["staging", "holds", "locks", "trash", "adopt.lock", "current.json"]);
const REPO_ROOT = join(import.meta.dirname, "../../..");

export const testCacheDir = (): string => process.env.SKERRY_TEST_CACHE || "/var/cache/skerry-test";

/** Imported on demand, because it loads the bundler and the code that builds templates. */
const setUpLibrary = () => import("@skerry/setup");

let prepared: Promise<DataFolder> | undefined;

/** Updates the cache to this checkout, and returns its folder. Concurrent processes wait for each other. */
export function prepareTestCache(): Promise<DataFolder> {
  prepared ??= prepare();
  return prepared;
}

/** Does not set up anything under `./skerry test`, which has updated the cache before it started the test runner. */
async function prepare(): Promise<DataFolder> {
  const folder = await createDataFolder(testCacheDir());
  if (process.env.SKERRY_TEST_RUN !== undefined) return folder;
  const { NO_IMAGE, setUp, silentSteps } = await setUpLibrary();
  await using _lock = await takeSetupLock(folder.lockFile, { wait: true });
  await setUp(folder, {
    repoRoot: REPO_ROOT,
    runtime: "gvisor",
    baseImage: NO_IMAGE,
    env: {},
    steps: silentSteps,
    signal: new AbortController().signal,
  });
  return folder;
}

/** Creates a data folder for one platform, on the file system of the cache. A platform can start from it at once. */
export async function createTestDataFolder(name: string, options: { readonly diskMb?: number } = {}): Promise<DataFolder> {
  const cache = await prepareTestCache();
  const dir = join(cache.root, "runs", name);
  if (options.diskMb !== undefined) {
    await mkdir(dir, { recursive: true });
    await mountSmallDisk(dir, options.diskMb);
  }
  const folder = await createDataFolder(dir);
  // Names the owner, so that the next run removes the folder when this run has died.
  await writeProcessRecord(join(folder.root, "owner.json"), process.pid);
  await cp(cache.toolsFile, folder.toolsFile);
  await cp(cache.templateFile, folder.templateFile);
  await cp(cache.agentFile, folder.agentFile);
  for (const dir of ["agent", "bin", "layers"] as const) {
    const from = join(cache.root, dir);
    await mkdir(join(folder.root, dir), { recursive: true });
    for (const entry of await readdir(from)) {
      // Trees and records never change once they exist, and a platform adds new ones to its own folder.
      if (!NOT_SHARED.has(entry)) await symlink(join(from, entry), join(folder.root, dir, entry));
    }
  }
  return folder;
}

/** Path of the Python that has the official SDK from PyPI. */
export async function preparePythonSdk(): Promise<string> {
  const cache = await prepareTestCache();
  const { ensurePythonSdk } = await import("@skerry/test-runner");
  return (await ensurePythonSdk(cache.root, { report: () => {}, signal: new AbortController().signal })).python;
}

/** Path of the Python that has the server of `code-interpreter-v1`, its kernels and its official client. */
export async function prepareInterpreterPython(): Promise<string> {
  const folder = await createDataFolder(testCacheDir());
  await using _lock = await takeSetupLock(folder.lockFile, { wait: true });
  const { ensureInterpreterPython } = await import("@skerry/test-runner");
  return await ensureInterpreterPython(folder.root, { report: () => {}, signal: new AbortController().signal });
}

/** Path of the program of the official command line, which Node.js runs. */
export async function prepareE2bCli(): Promise<string> {
  const folder = await createDataFolder(testCacheDir());
  await using _lock = await takeSetupLock(folder.lockFile, { wait: true });
  const { ensureE2bCli } = await import("@skerry/test-runner");
  return (await ensureE2bCli(folder.root, { report: () => {}, signal: new AbortController().signal })).program;
}

/** Path of the registry program for tests that pull OCI images. */
export async function prepareTestRegistry(): Promise<string> {
  const folder = await createDataFolder(testCacheDir());
  await using _lock = await takeSetupLock(folder.lockFile, { wait: true });
  const { ensureTestRegistry } = await import("@skerry/test-runner");
  return (await ensureTestRegistry(folder.root, { report: () => {}, signal: new AbortController().signal })).binary;
}

/** Path of the program that checks alert rules. */
export async function preparePromtool(): Promise<string> {
  const folder = await createDataFolder(testCacheDir());
  await using _lock = await takeSetupLock(folder.lockFile, { wait: true });
  const { ensurePromtool } = await import("@skerry/test-runner");
  return (await ensurePromtool(folder.root, { report: () => {}, signal: new AbortController().signal })).binary;
}

/** Adds the layers of the restore soak to the cache. Data folders that are created later have them in their layer store. */
export async function prepareSoakTemplate(): Promise<SoakTemplate> {
  const folder = await prepareTestCache();
  const { ensureSoakTemplate } = await setUpLibrary();
  const { template } = await ensureSoakTemplate(folder, { repoRoot: REPO_ROOT, report: () => {}, signal: new AbortController().signal });
  return template;
}
