import { join } from "node:path";
import type { LayerDigest, LayerStore } from "@skerry/layers";
import type { Distribution } from "../base/distribution.ts";
import { layerFromArchive } from "../base/from-archive.ts";
import { runBaseSteps } from "../base/run-base-steps.ts";
import { storeChain } from "../base/store-chain.ts";
import { openBuildNode } from "../build-node.ts";
import type { DataFolder } from "../folder/data-folder.ts";
import type { Report } from "../steps.ts";
import { SOAK_SELECTION } from "./soak-recipe.ts";

export interface SystemLayerOptions {
  readonly folder: DataFolder;
  readonly store: LayerStore;
  readonly holder: string;
  readonly distribution: Distribution;
  readonly repoRoot: string;
  readonly report: Report;
  readonly signal: AbortSignal;
}

/** The template `base` with the soak's packages, as one layer. */
export async function makeSystemLayer({
  folder,
  store,
  holder,
  distribution,
  repoRoot,
  report,
  signal,
}: SystemLayerOptions): Promise<LayerDigest> {
  await using node = await openBuildNode({ folder, name: "soak", runtime: "gvisor", env: {} });
  report("unpacking a JVM, PostgreSQL and Chromium (a minute or two)");
  const source = await layerFromArchive({ node, distribution, selection: SOAK_SELECTION, signal });
  const npmDir = join(repoRoot, "node_modules/npm");
  const chain = await runBaseSteps({ node, source, distribution, isComplete: true, npmDir, report, signal });
  return await storeChain(chain, { node, store, holder, report });
}
