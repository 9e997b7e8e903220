// The port to what earlier builds left: for each key the layer that a step wrote, and the context after it.

import type { LayerDigest } from "@skerry/layers";
import type { StepContext } from "../context.ts";

export interface CachedStep {
  /** Lowest first. Empty: the step changed no files. */
  readonly layers: readonly LayerDigest[];
  /** After the step. */
  readonly context: StepContext;
}

export interface StepCache {
  /**
   * The result of a step of this scope, which counts as used now. Undefined when there is none, it is damaged, or one of its layers is gone.
   * The caller holds the layers before it uses them, and takes the result for missing when that fails.
   */
  find(scope: string, key: string): Promise<CachedStep | undefined>;
  /** Replaces what is there. The caller holds the layers. */
  put(scope: string, key: string, step: CachedStep): Promise<void>;
  /** All layers that a result needs. */
  layers(): ReadonlySet<string>;
  /** Forgets what was not used for long. */
  evict(): Promise<void>;
}
