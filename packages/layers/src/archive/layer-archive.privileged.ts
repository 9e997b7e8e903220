// Moves layers: packed into a blob store on one machine, unpacked from it on another.

import type { BlobDigest, BlobStore } from "@skerry/blobs";
import type { LayerDigest } from "../store/layer-digest.ts";
import type { LayerStore } from "../store/layer-store.privileged.ts";
import { packTree } from "./pack-tree.privileged.ts";
import { unpackTree } from "./unpack-tree.privileged.ts";

/** Packs a layer into a blob. The same layer gives the same blob. Preconditions: the layer is held or in use meanwhile. */
export async function exportLayer(layer: LayerDigest, { layers, blobs }: { layers: LayerStore; blobs: BlobStore }): Promise<BlobDigest> {
  return await blobs.put(packTree(await layers.path(layer)));
}

/**
 * Unpacks a blob into the layer store, for the holder. Throws PlatformError("layer_damaged") when the blob is not that layer. A failure
 * leaves nothing.
 */
export async function importLayer(
  { layer, blob, holder }: { layer: LayerDigest; blob: BlobDigest; holder: string },
  { layers, blobs }: { layers: LayerStore; blobs: BlobStore },
): Promise<void> {
  const target = await layers.stagingDir();
  try {
    await unpackTree(await blobs.get(blob), target);
    await layers.adopt(target, { holder, expected: layer });
  } catch (error) {
    await layers.discard(target);
    throw error;
  }
}
