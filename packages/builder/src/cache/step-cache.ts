// The port to what earlier builds left: for each key of a step the files and the context after it.

import type { LayerDigest } from "@skerry/layers";
import type { StepContext } from "../context.ts";

export interface CachedStep {
  /** The whole chain after the step, lowest first. */
  readonly layers: readonly LayerDigest[];
  /** After the step. */
  readonly context: StepContext;
}

/** What the last build of a template did, which tells why a step of the next one is not cached. */
export type BuildTrail = readonly TrailStep[];

export interface TrailStep {
  readonly key: string;
  /** Of the files and the context that the step began with. */
  readonly state: string;
  readonly type: string;
  /** Of the arguments. */
  readonly args: string;
  readonly filesHash: string;
}

export interface StepCache {
  /**
   * The result of a step of this scope, which counts as used now. Undefined when there is none, it is damaged, or one of its layers is gone.
   * The caller holds the layers before it uses them, and takes the result for missing when that fails.
   */
  find(scope: string, key: string): Promise<CachedStep | undefined>;
  /** Replaces what is there. Precondition: the caller holds the layers. */
  put(scope: string, key: string, step: CachedStep): Promise<void>;
  /** Undefined when the template was not built in this scope, or not for long. */
  trail(scope: string, templateId: string): Promise<BuildTrail | undefined>;
  putTrail(scope: string, templateId: string, trail: BuildTrail): Promise<void>;
  /** All layers that a result needs. */
  layers(): ReadonlySet<string>;
  /** Forgets what was not used for long. */
  evict(): Promise<void>;
}
