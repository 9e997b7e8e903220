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
    return await store.adopt(staging, { holder });
  } catch (error) {
    await store.discard(staging);
    throw error;
  }
}
