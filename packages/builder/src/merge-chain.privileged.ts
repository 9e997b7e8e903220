// Keeps chains of layers short. All the layers of a sandbox have to fit into one mount, together with the disk areas that snapshots add.

import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { type LayerDigest, type LayerStore, mergeUppers } from "@skerry/layers";

export interface ChainLimits {
  /** A longer chain is shortened. */
  readonly most: number;
  /** So many of the topmost layers become one. */
  readonly merged: number;
}

/** A mount takes 194 layers, and a sandbox adds up to 48 disk areas. Lookups of files take longer the longer the chain is. */
export const CHAIN_LIMITS: ChainLimits = { most: 64, merged: 48 };

export interface ShortenOptions {
  readonly layers: LayerStore;
  readonly holder: string;
  readonly limits: ChainLimits | undefined;
}

/** The chain, or a shorter one that means the same, whose new layer the holder holds. */
export async function shortenChain(
  chain: readonly LayerDigest[],
  { layers, holder, limits = CHAIN_LIMITS }: ShortenOptions,
): Promise<readonly LayerDigest[]> {
  if (chain.length <= limits.most) return chain;
  const kept = chain.slice(0, -limits.merged);
  const staging = await layers.stagingDir();
  try {
    // The merge needs a directory beside its target for itself.
    const tree = join(staging, "tree");
    await mkdir(tree);
    const trees = await Promise.all(chain.slice(-limits.merged).map((digest) => layers.path(digest)));
    await mergeUppers(trees, tree);
    return [...kept, await layers.adopt(tree, { holder })];
  } finally {
    await layers.discard(staging);
  }
}
