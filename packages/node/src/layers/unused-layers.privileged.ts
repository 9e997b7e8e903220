// Which layers nothing on this node refers to, and their removal.
//
// The node knows its sandboxes, its images and the holds of its layer store. It does not know the builds of templates: the control
// plane does, and it asks for the removal of the layers that no build needs. The node has the last word.

import { asError, type Logger, PlatformError } from "@skerry/base";
import { parseLayerDigest } from "@skerry/layers";
import type { NodeConfig } from "../config.ts";
import type { Containers } from "../containers/containers.ts";
import { readJournal } from "../containers/journal.privileged.ts";
import { hasSetAside } from "../containers/recover.privileged.ts";
import type { ImageStore } from "../images/image-store.privileged.ts";
import type { NodePaths } from "../paths.ts";
import type { WarmPool } from "../pool/warm-pool.ts";

export interface UnusedLayersOptions {
  readonly config: Pick<NodeConfig, "layers">;
  readonly paths: NodePaths;
  readonly containers: Containers;
  readonly images: ImageStore;
  readonly pool: WarmPool;
  /** The layers that cached steps of builds need. */
  readonly cachedLayers: () => ReadonlySet<string>;
  readonly logger: Logger;
}

export class UnusedLayers {
  readonly #options: UnusedLayersOptions;
  #sweeping: Promise<void> = Promise.resolve();

  constructor(options: UnusedLayersOptions) {
    this.#options = options;
  }

  /** Layers that no sandbox, no image and no hold refers to. What the warm pool has ready does not count: `delete` discards that. */
  list(): string[] {
    const { config, containers, images, cachedLayers } = this.#options;
    if (this.#hasUnreadable()) return [];
    const used = new Set([
      ...config.layers.held(),
      ...cachedLayers(),
      ...containers.all().flatMap(({ record, build }) => (record.sandboxId === "" && !build ? [] : record.layers)),
      ...images.list().flatMap(({ kind, layers }) => (kind === "template" ? [] : layers)),
    ]);
    return config.layers.list().filter((digest) => !used.has(digest));
  }

  /**
   * The node changes to another cluster, whose database does not know the layers of the first one. They are held until that cluster
   * comes back, or until an operator deletes the hold.
   */
  changeCluster({ from, to }: { readonly from: string; readonly to: string }): void {
    const { layers } = this.#options.config;
    if (from !== "") layers.holdAll(holderOf(from));
    layers.release(holderOf(to));
  }

  /** Removes a layer that no template needs. False when something on this node uses it, or when it does not exist. */
  async delete(text: string): Promise<boolean> {
    const { config, pool, logger } = this.#options;
    const digest = parseLayerDigest(text);
    const about = await config.layers.about(digest).catch(unlessMissing);
    if (!about) return false;
    await pool.forget(digest);
    const removed = await config.layers.remove(digest, () => this.#isInUse(digest));
    if (removed) logger.info({ layer: digest, size_bytes: about.sizeBytes }, "layer removed: no template, sandbox or image needs it");
    if (removed) this.sweep();
    return removed;
  }

  /** Deletes the files of removed layers and of interrupted adoptions in the background. */
  sweep(): void {
    const { config, logger } = this.#options;
    this.#sweeping = this.#sweeping
      .then(() => config.layers.sweep())
      .catch((error: unknown) =>
        logger.warn({ err: asError(error) }, "the files of removed layers could not be deleted, will be tried again"),
      );
  }

  /** Resolves when no sweep is running. */
  settled(): Promise<void> {
    return this.#sweeping;
  }

  /** Also looks at records on disk whose container could not be released: a mount of it may still use the layer. */
  #isInUse(digest: string): boolean {
    const { paths, containers, images, cachedLayers } = this.#options;
    const refers = ({ layers }: { readonly layers: readonly string[] }) => layers.includes(digest);
    return (
      this.#hasUnreadable() ||
      containers.all().some(({ record }) => refers(record)) ||
      images.list().some(refers) ||
      cachedLayers().has(digest) ||
      readJournal(paths).some(({ record, isDamaged }) => isDamaged || (record !== undefined && refers(record)))
    );
  }

  /** A record that cannot be read may refer to any layer. */
  #hasUnreadable(): boolean {
    return this.#options.images.damaged.size > 0 || hasSetAside(this.#options.paths);
  }
}

function unlessMissing(error: unknown): undefined {
  if (!(error instanceof PlatformError) || error.code !== "layer_missing") throw error;
}

function holderOf(clusterId: string): string {
  return `cluster-${clusterId}`;
}
