// The disk of a snapshot as layers, for a template that is based on it. The snapshot keeps its own areas: it may be deleted, and the template
// stays.

import { readdirSync } from "node:fs";
import { PlatformError } from "@skerry/base";
import { cleanUpper, type LayerDigest, parseLayerDigest } from "@skerry/layers";
import { copyUpper } from "../areas/copy-area.privileged.ts";
import type { Containers } from "../containers/containers.ts";
import type { HostDeps } from "../containers/host.privileged.ts";
import { crashPoint } from "../crash-points.ts";
import type { ImageStore } from "../images/image-store.privileged.ts";
import type { ImageUses } from "../images/image-uses.ts";
import type { ImageRecord } from "../records/image-record.ts";
import { removeOwnFiles } from "./commit-area.privileged.ts";
import { removeSiteCertificates } from "./site-certificates.privileged.ts";

export interface ImageLayersDeps {
  readonly deps: HostDeps;
  readonly containers: Containers;
  readonly images: ImageStore;
  readonly uses: ImageUses;
}

/** The layers, lowest first, which the holder holds. Throws PlatformError("image_missing") when there is no such snapshot. */
export async function layersOfImage(
  all: ImageLayersDeps,
  imageId: string,
  { holder, signal }: { readonly holder: string; readonly signal: AbortSignal },
): Promise<readonly LayerDigest[]> {
  const image = all.images.get(imageId);
  const digests = image?.layers.map(parseLayerDigest) ?? [];
  if (image?.kind !== "snapshot" || !(await all.deps.config.layers.hold(holder, digests)))
    throw new PlatformError("image_missing", `snapshot ${imageId.slice(0, 100)} is not on this machine`);
  // The image is deleted only after this.
  return await all.uses.during(imageId, adoptAreas(all, image, { holder, signal, digests }));
}

async function adoptAreas(
  { deps, containers }: ImageLayersDeps,
  { local: { frozenAreas } }: ImageRecord,
  { holder, signal, digests }: { readonly holder: string; readonly signal: AbortSignal; readonly digests: readonly LayerDigest[] },
): Promise<readonly LayerDigest[]> {
  const chain = [...digests];
  try {
    for (const area of frozenAreas) {
      signal.throwIfAborted();
      const { upper } = await deps.areas.open(area, { readOnly: true });
      const layer = await adoptCopy(deps, upper, { holder, below: chain });
      if (layer !== undefined) chain.push(layer);
    }
    return chain;
  } finally {
    await containers.collectAreas(frozenAreas);
  }
}

/** Files of a snapshot have the ids that they have inside. */
async function adoptCopy(
  { config: { layers } }: HostDeps,
  upper: string,
  { holder, below }: { readonly holder: string; readonly below: readonly LayerDigest[] },
): Promise<LayerDigest | undefined> {
  const staged = await layers.stagingDir();
  try {
    await copyUpper(upper, staged, 0);
    crashPoint("build.area-copied");
    removeSiteCertificates({ upper: staged, layers: await Promise.all(below.map((digest) => layers.path(digest))), idBase: 0 });
    removeOwnFiles(staged, 0);
    await cleanUpper(staged);
    if (readdirSync(staged).length > 0) return await layers.adopt(staged, { holder });
    await layers.discard(staged);
    return undefined;
  } catch (error) {
    await layers.discard(staged);
    throw error;
  }
}
