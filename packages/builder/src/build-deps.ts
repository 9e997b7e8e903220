import type { BlobStore } from "@skerry/blobs";
import type { LayerStore } from "@skerry/layers";
import type { BuildHost, BuildLog } from "./build-host.ts";
import type { StepCache } from "./cache/step-cache.ts";
import type { ChainLimits } from "./merge-chain.privileged.ts";
import type { ImageSettings } from "./sources/source.ts";

export interface BuildDeps {
  readonly host: BuildHost;
  readonly layers: LayerStore;
  /** Has the archives of COPY and ADD. */
  readonly blobs: BlobStore;
  readonly cache: StepCache;
  readonly images: ImageSettings;
  /** How long a chain of layers may be. */
  readonly chainLimits?: ChainLimits;
  readonly log: BuildLog;
  /** Ends the build. If the reason is a BuildFailure, the build fails with it, and otherwise as cancelled. */
  readonly signal: AbortSignal;
}
