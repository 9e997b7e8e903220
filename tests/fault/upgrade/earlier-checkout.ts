// A checkout of an earlier commit with its own packages. It is made once and kept in the test cache.

import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import { takeSetupLock } from "@skerry/setup/folder";
import { prepareTestCache } from "@skerry/testkit";

const ROOT = join(import.meta.dirname, "../../..");
const INSTALL_LIMIT_MS = 600_000;

export interface EarlierCheckout {
  /** Path of its `./skerry`. */
  readonly command: string;
  /**
   * Makes this checkout accept the base template of a data folder as its own. Each version has its own recipe, and a rebuild takes half a
   * minute.
   */
  acceptBaseTemplate(templateFile: string): Promise<void>;
}

export async function prepareEarlierCheckout(commit: string): Promise<EarlierCheckout> {
  const cache = await prepareTestCache();
  const dir = join(cache.root, "earlier", commit);
  mkdirSync(join(cache.root, "earlier"), { recursive: true });
  await using _lock = await takeSetupLock(`${dir}.lock`, { wait: true });
  if (!existsSync(dir)) await make(commit, dir);
  const recipe = await recipeOf(dir);
  return {
    command: join(dir, "skerry"),
    acceptBaseTemplate: async (file) => {
      writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, "utf8")), recipe }));
    },
  };
}

async function make(commit: string, dir: string): Promise<void> {
  const git = (...args: string[]) => runCommand("git", ["-C", ROOT, ...args], { timeoutMs: 60_000 });
  await git("cat-file", "-e", `${commit}^{commit}`).catch((cause: unknown) => {
    throw new Error(`this clone has no commit ${commit}: if it is shallow, fetch the history (git fetch --unshallow)`, { cause });
  });
  const staging = `${dir}.new`;
  rmSync(staging, { recursive: true, force: true });
  mkdirSync(staging);
  await git("archive", `--output=${staging}.tar`, commit);
  await runCommand("tar", ["-xf", `${staging}.tar`, "-C", staging], { timeoutMs: 60_000 });
  rmSync(`${staging}.tar`);
  // The first command installs the packages of the checkout's own lock file.
  await runCommand(join(staging, "skerry"), ["--version"], { env: environment(), timeoutMs: INSTALL_LIMIT_MS });
  renameSync(staging, dir);
}

/** The environment of the test run says where packages come from. */
function environment(): Record<string, string> {
  return Object.fromEntries(Object.entries(process.env).filter((entry): entry is [string, string] => entry[1] !== undefined));
}

async function recipeOf(dir: string): Promise<string> {
  const base = join(dir, "packages/operator/src/setup/base");
  const npm = JSON.parse(readFileSync(join(dir, "node_modules/npm/package.json"), "utf8")) as { version: string };
  const script = `
    import { readOwnOsRelease } from "${base}/distribution.ts";
    import { recipeHash } from "${base}/recipe.ts";
    const { ID, VERSION_CODENAME } = await readOwnOsRelease();
    const about = { arch: process.arch, nodeVersion: process.version, npmVersion: "${npm.version}" };
    console.log(recipeHash({ distribution: ID + " " + VERSION_CODENAME, ...about }));`;
  const { stdout } = await runCommand(process.execPath, ["--input-type=module", "--eval", script], { timeoutMs: 30_000 });
  return stdout.trim();
}
