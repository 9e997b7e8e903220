// Assembles the read-only tree that is mounted at /.skerry in every sandbox. This code runs on the host, never in a sandbox.
//
// A tree is named by the digest of its content and never changes. Running sandboxes keep their tree; new sandboxes get the newest one.
// Layout: agent.js, which loads agent-main.js with its code cache; bin/{node,tini}; lib/<loader and libraries>; native/<addons>.

import { createHash } from "node:crypto";
import { constants, createReadStream } from "node:fs";
import { access, chmod, copyFile, mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { errnoOf } from "@skerry/base";
import { AGENT_VERSION } from "@skerry/wire";
import { bundleAgent } from "./bundle.ts";
import { bundleRecipe, installBundle } from "./code-cache.ts";
import { agentEntry, collectSources, hostArch, type SourceFile } from "./sources.ts";

export interface AssembleOptions {
  /** The tree becomes `<outDir>/<digest>`. */
  readonly outDir: string;
  /** Holds the unfinished tree. It must be on the file system of outDir, because the finished tree is renamed into place. */
  readonly workDir: string;
}

export interface AssembledAgent {
  readonly digest: string;
  readonly version: string;
  readonly path: string;
}

export async function assembleAgent(options: AssembleOptions): Promise<AssembledAgent> {
  const bundle = await bundleAgent(agentEntry());
  const arch = hostArch();
  const sources = await collectSources(arch);
  const digest = await digestOf([bundle, Buffer.from(bundleRecipe(arch))], sources);
  const path = join(options.outDir, digest);
  const assembled = { digest, version: AGENT_VERSION, path };
  if (await exists(path)) return assembled;

  await mkdir(options.outDir, { recursive: true });
  await mkdir(options.workDir, { recursive: true });
  const stage = await mkdtemp(join(options.workDir, "agent-"));
  try {
    for (const file of sources) await install(stage, file);
    await installBundle(stage, bundle, arch);
    await chmod(stage, 0o755);
    await publish(stage, path);
  } finally {
    await rm(stage, { recursive: true, force: true });
  }
  return assembled;
}

async function install(stage: string, file: SourceFile): Promise<void> {
  const target = join(stage, file.target);
  await mkdir(dirname(target), { recursive: true, mode: 0o755 });
  await copyFile(file.source, target, constants.COPYFILE_FICLONE);
  await chmod(target, file.mode);
}

/** When two processes publish at once, the first rename wins. Both trees have the same content. */
async function publish(stage: string, path: string): Promise<void> {
  try {
    await rename(stage, path);
  } catch (error) {
    if (errnoOf(error) !== "ENOTEMPTY" && errnoOf(error) !== "EEXIST") throw error;
  }
}

async function digestOf(texts: readonly Uint8Array[], sources: readonly SourceFile[]): Promise<string> {
  const hash = createHash("sha256");
  for (const text of texts) hash.update(text).update("\0");
  for (const file of sources) {
    hash.update(`\0${file.target}\0${file.mode}\0`);
    for await (const chunk of createReadStream(file.source, { highWaterMark: 1024 * 1024 })) hash.update(chunk as Buffer);
  }
  return hash.digest("hex").slice(0, 16);
}

async function exists(path: string): Promise<boolean> {
  try {
    await access(path);
    return true;
  } catch {
    return false;
  }
}
