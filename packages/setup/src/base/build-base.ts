import { asError } from "@skerry/base";
import type { LayerStore, OciImageReference } from "@skerry/layers";
import { type BuildNode, openBuildNode } from "../build-node.ts";
import type { DataFolder } from "../folder/data-folder.ts";
import type { RuntimeName } from "../folder/settings.ts";
import type { Report } from "../steps.ts";
import { type Distribution, detectDistribution } from "./distribution.ts";
import { BASE_SELECTION, layerFromArchive } from "./from-archive.ts";
import { type ImageOrigin, layerFromImage } from "./from-image.ts";
import { runBaseSteps } from "./run-base-steps.ts";
import { storeChain } from "./store-chain.ts";

export interface BuildBaseOptions {
  readonly folder: DataFolder;
  /** Takes the finished layer. */
  readonly store: LayerStore;
  /** Holds the finished layer. */
  readonly holder: string;
  readonly image: OciImageReference | undefined;
  /** The runtime of the sandboxes that the steps run in. */
  readonly runtime: RuntimeName;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly npmDir: string;
  readonly report: Report;
  readonly signal: AbortSignal;
}

export interface ArchiveOrigin {
  readonly from: "archive";
  /** Why the wanted OCI image was not used. */
  readonly imageFailure?: string;
}

export type BaseOrigin = ImageOrigin | ArchiveOrigin;

export interface BuiltBase {
  readonly layer: string;
  readonly origin: BaseOrigin;
  readonly distribution: Distribution;
}

/** Builds the base template from the OCI image if possible, or else from the package archive, and stores it as one layer. */
export async function buildBase(options: BuildBaseOptions): Promise<BuiltBase> {
  const { folder, image, runtime, env, report, signal } = options;
  await using node = await openBuildNode({ folder, name: "base", runtime, env });
  if (image === undefined) return await fromArchive(options, node, undefined);
  try {
    const { layer, distribution, origin } = await layerFromImage(image, { node, report, signal });
    const built = await runBaseSteps({ ...options, node, source: layer, distribution, isComplete: false });
    return { layer: await storeChain(built, { ...options, node }), origin, distribution };
  } catch (error) {
    signal.throwIfAborted();
    const imageFailure = asError(error).message;
    report(`the image can't be used: ${imageFailure}`);
    return await fromArchive(options, node, imageFailure);
  }
}

async function fromArchive(options: BuildBaseOptions, node: BuildNode, imageFailure: string | undefined): Promise<BuiltBase> {
  const { report, signal } = options;
  const distribution = await detectDistribution();
  report("unpacking the distribution (half a minute)");
  const source = await layerFromArchive({ node, distribution, selection: BASE_SELECTION, signal });
  const built = await runBaseSteps({ ...options, node, source, distribution, isComplete: true });
  const origin: ArchiveOrigin = { from: "archive", ...(imageFailure !== undefined && { imageFailure }) };
  return { layer: await storeChain(built, { ...options, node }), origin, distribution };
}
