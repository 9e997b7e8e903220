// What a build starts from: an image of a registry, or a build of another template. A source logs its lines of the phase "base" itself, and
// throws BuildFailure with step "base" for whatever is the caller's.

import type { LayerDigest, LayerStore, RegistrySettings } from "@skerry/layers";
import type { StartCommand } from "@skerry/wire/node";
import type { BuildHost, BuildLog, BuildSize } from "../build-host.ts";
import type { StepCache } from "../cache/step-cache.ts";
import type { StepContext } from "../context.ts";

export interface SourceOptions {
  readonly buildId: string;
  readonly templateId: string;
  /** Of the step cache. */
  readonly scope: string;
  /** Holds the layers. It holds nothing yet. */
  readonly holder: string;
  readonly layers: LayerStore;
  readonly cache: StepCache;
  readonly images: ImageSettings;
  readonly host: BuildHost;
  readonly size: BuildSize;
  readonly runtime: string;
  /** No cached image. */
  readonly force: boolean;
  readonly log: BuildLog;
  readonly signal: AbortSignal;
}

/** How this machine pulls images. */
export interface ImageSettings {
  /** A directory below which images are pulled. Only root can look into it. */
  readonly pullDir: string;
  readonly registries?: RegistrySettings;
  /** Maximum size of an image, unpacked. Default 25,000 MB. */
  readonly maxImageMb?: number;
  /** Address of the API of Amazon ECR. Default: that of the region that the caller names. */
  readonly ecrEndpoint?: string;
}

export interface PreparedSource {
  /** Lowest first. The holder holds them. They have a `user` with sudo, bash, and whatever else the agent and steps need. */
  readonly layers: readonly LayerDigest[];
  /** Identifies what the layers and the context are, for the keys of the steps: hexadecimal. The same source has the same key. */
  readonly key: string;
  /** Whether nothing was built for it now. */
  readonly isCached: boolean;
  /** An image: user "root", and the variables of the image. A template: what its build left. */
  readonly context: StepContext;
  /** Of a template that has one. */
  readonly start?: StartCommand;
}
