import { lstat, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { flattenLayers, type LayerDigest, type LayerStore } from "@skerry/layers";
import type { BuildNode } from "../build-node.ts";
import type { Report } from "../steps.ts";

export interface StoreChainOptions {
  readonly node: BuildNode;
  readonly store: LayerStore;
  readonly holder: string;
  readonly report: Report;
}

/**
 * Stores what a build has made as one layer, instead of one for each step: every sandbox of every template that is based on it mounts it, and
 * what steps have removed takes no space.
 */
export async function storeChain(chain: readonly LayerDigest[], { node, store, holder, report }: StoreChainOptions): Promise<LayerDigest> {
  report("storing the template");
  const staging = await store.stagingDir();
  try {
    await flattenLayers(await Promise.all(chain.map((digest) => node.layers.path(digest))), staging);
    await removeTraces(staging);
    return await store.adopt(staging, { holder });
  } catch (error) {
    await store.discard(staging);
    throw error;
  }
}

/** Each sandbox has files of its own over these. */
const OWN_FILES: Readonly<Record<string, string>> = {
  "etc/hostname": "sandbox\n",
  "etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
  "etc/resolv.conf": "",
};

/** What is mounted in a sandbox cannot be changed by a step: these are files of the image, and mount points. Links in an image lead nowhere. */
async function removeTraces(root: string): Promise<void> {
  const isDirectory = async (name: string) => (await lstat(join(root, name)).catch(() => undefined))?.isDirectory() ?? false;
  await rm(join(root, ".skerry"), { recursive: true, force: true });
  if (await isDirectory("run")) {
    for (const name of await readdir(join(root, "run"))) await rm(join(root, "run", name), { recursive: true, force: true });
  }
  if (!(await isDirectory("etc"))) return;
  for (const [path, text] of Object.entries(OWN_FILES)) {
    await rm(join(root, path), { recursive: true, force: true });
    await writeFile(join(root, path), text, { mode: 0o644, flag: "wx" });
  }
}
